package mariadb

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const (
	namePattern = "mailretention-mariadb-*"
	lockSuffix  = ".lock"
	socketMax   = 103  // bytes of a Unix socket's path that every system takes
	logTail     = 4000 // bytes of the server's log that an error shows
)

// directory holds the data of one server. It lies beside its lock file, which this process and the server keep locked,
// so that the directory of dead ones is told from that of live ones whatever process ids are reused.
type directory struct {
	path string
	lock *os.File
}

// newDirectory makes one that only this user can enter, in the first place that will do, and removes those of dead servers.
func newDirectory() (directory, error) {
	var failed error
	for _, place := range places() {
		sweep(place)
		d, err := makeDirectory(place)
		if err == nil {
			return d, nil
		}
		failed = errors.Join(failed, err)
	}
	return directory{}, fmt.Errorf("no place for the server's data: %w", failed)
}

func makeDirectory(place string) (d directory, err error) {
	d.lock, err = newLock(place)
	if err != nil {
		return d, err
	}
	d.path = strings.TrimSuffix(d.lock.Name(), lockSuffix)
	if len(d.socket()) > socketMax {
		return d, errors.Join(fmt.Errorf("%s is too long for a socket's path: set TMPDIR to a shorter one", d.socket()), d.remove())
	}
	for _, sub := range []string{d.path, d.data(), d.temporary()} {
		if err := os.Mkdir(sub, 0o700); err != nil {
			return d, errors.Join(err, d.remove())
		}
	}
	return d, nil
}

// newLock makes a lock file and locks it. Another process's sweep may take the file between the two: then once more.
func newLock(place string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(place, namePattern+lockSuffix)
		if err != nil {
			return nil, err
		}
		err = lock(f)
		if err == nil && isAt(f, f.Name()) {
			return f, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, errLocked) {
			return nil, err
		}
	}
}

// sweep removes what servers left behind whose processes are gone: theirs are the lock files that nobody has locked.
func sweep(place string) {
	locks, _ := filepath.Glob(filepath.Join(place, namePattern+lockSuffix))
	for _, name := range locks {
		f, err := os.Open(name)
		if err != nil {
			continue // another user's, or just swept by another process
		}
		if lock(f) == nil && isAt(f, name) {
			_ = directory{path: strings.TrimSuffix(name, lockSuffix), lock: f}.remove() // what stays is swept by the next start
		} else {
			f.Close()
		}
	}
}

// isAt reports whether f is still the file of that name.
func isAt(f *os.File, name string) bool {
	opened, err1 := f.Stat()
	named, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(opened, named)
}

// remove removes the data, then the lock file. Twice is fine.
func (d directory) remove() error {
	defer d.lock.Close()
	if err := os.RemoveAll(d.path); err != nil {
		return err
	}
	if err := os.Remove(d.lock.Name()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (d directory) data() string      { return filepath.Join(d.path, "data") }
func (d directory) temporary() string { return filepath.Join(d.path, "tmp") }
func (d directory) socket() string    { return filepath.Join(d.path, "sock") }
func (d directory) pid() string       { return filepath.Join(d.path, "pid") }
func (d directory) log() string       { return filepath.Join(d.path, "error.log") }

// logTail returns the end of the server's log, which says why it didn't start.
func (d directory) logTail() string {
	f, err := os.Open(d.log())
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		_, _ = f.Seek(max(0, info.Size()-logTail), io.SeekStart)
	}
	tail, _ := io.ReadAll(f)
	return string(tail)
}
