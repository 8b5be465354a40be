package mariadb

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSweepLeavesTheLiving(t *testing.T) {
	place := t.TempDir()
	living, err := makeDirectory(place)
	require.NoError(t, err)
	dead, err := makeDirectory(place)
	require.NoError(t, err)
	require.NoError(t, dead.lock.Close())
	sweep(place)
	require.DirExists(t, living.data())
	require.NoDirExists(t, dead.path)
	require.NoError(t, living.remove())
	require.NoError(t, living.remove(), "twice")
	left, err := os.ReadDir(place)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestNoRoomForASocketsPath(t *testing.T) {
	place := filepath.Join(t.TempDir(), strings.Repeat("x", socketMax))
	require.NoError(t, os.Mkdir(place, 0o700))
	_, err := makeDirectory(place)
	require.ErrorContains(t, err, "TMPDIR")
	left, err := os.ReadDir(place)
	require.NoError(t, err)
	require.Empty(t, left)
}
