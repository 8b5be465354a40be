package mariadb

import (
	"os"
	"syscall"
)

const (
	memory       = "/dev/shm"
	memoryNeeded = 1 << 30 // bytes that must be free there
)

// places are the directories that data may be kept in, the fastest first: in memory DDL takes a fraction of the time.
func places() []string {
	var fs syscall.Statfs_t
	if syscall.Statfs(memory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= memoryNeeded {
		return []string{memory, os.TempDir(), "/tmp"}
	}
	return []string{os.TempDir(), "/tmp"}
}

// errLocked is the error of lock when another has the lock.
const errLocked = syscall.EWOULDBLOCK

// lock locks f, at once or not at all, for this process and the children that inherit f.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// dieWithParent has the kernel kill the child when the thread ends that started it. A terminal's interrupt is this
// process's alone, so that it can shut the child down in order.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
