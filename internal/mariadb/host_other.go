//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package mariadb

import (
	"errors"
	"os"
	"syscall"
)

func places() []string {
	return []string{os.TempDir()}
}

var errLocked = errors.New("locked by another")

// lock fails: there is no private server on this system.
func lock(*os.File) error {
	return errors.New("no private server on this system: set MAILRETENTION_DSN to the DSN of one that runs")
}

func dieWithParent() *syscall.SysProcAttr { return nil }
