package mariadb

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// childVariable makes TestServerDiesWithItsParent the parent that dies.
const childVariable = "MAILRETENTION_TEST_CHILD"

func TestServerDiesWithItsParent(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		s, err := Start(t.Context(), Options{})
		require.NoError(t, err)
		fmt.Println("directory", s.dir.path)
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServerDiesWithItsParent$")
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.Output()
	require.Error(t, err)
	_, rest, found := strings.Cut(string(out), "directory ")
	require.True(t, found, "%s", out)
	dir, _, _ := strings.Cut(rest, "\n")

	// The server has the directory's lock: it is swept when the server is gone too, and no sooner.
	require.Eventually(t, func() bool {
		sweep(filepath.Dir(dir))
		_, err := os.Stat(dir)
		return os.IsNotExist(err)
	}, 10*time.Second, 10*time.Millisecond)
	require.NoFileExists(t, dir+lockSuffix)
}
