package mariadb

import (
	"flag"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var download = flag.Bool("download", false, "test the download of the distribution's packages also where a server is installed")

func TestTwoFirstStartsUnpackThePackagesOnce(t *testing.T) {
	if p, ok := installed(t.Context()); ok && !*download {
		t.Skipf("%s is installed: use -download", p.path)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	var programs [2]program
	var errs [2]error
	var both sync.WaitGroup
	for i := range programs {
		both.Go(func() { programs[i], errs[i] = unpacked(t.Context()) })
	}
	both.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, programs[0], programs[1])

	for _, options := range []Options{{}, {Grants: true}} {
		s, err := launch(t.Context(), programs[0], options)
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}
