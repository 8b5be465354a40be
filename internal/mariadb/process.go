package mariadb

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// process is a child, and a goroutine that waits for its end.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed at its end
	err  error         // how it ended; to be read when done is closed
}

// start starts cmd as a child that dies with this process, where the system can do that. It is started from a thread
// that lives until the child's end, since Linux sends the parent's death signal when the thread ends that made the child.
// Source: prctl(2), PR_SET_PDEATHSIG.
func start(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = dieWithParent()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(p.done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	return p, <-started
}

// signal sends sig to the process; if it has ended already that is no error.
func (p *process) signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
