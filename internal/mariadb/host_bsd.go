//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package mariadb

import (
	"os"
	"syscall"
)

// places are the directories that data may be kept in. The second has a short path, as sockets need.
func places() []string {
	return []string{os.TempDir(), "/tmp"}
}

// errLocked is the error of lock when another has the lock.
const errLocked = syscall.EWOULDBLOCK

// lock locks f, at once or not at all, for this process and the children that inherit f.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// dieWithParent does nothing: there is no parent's death signal here.
func dieWithParent() *syscall.SysProcAttr { return nil }
