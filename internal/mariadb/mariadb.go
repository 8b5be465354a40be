// Package mariadb starts a private MariaDB server for examples and tests, as any user and without installing anything:
// the server that is on the machine, else that of the distribution's signed packages, unpacked into the user's cache.
//
// It listens on a Unix socket in a directory that only this user can enter, keeps its data there, and on Linux never
// outlives the process that started it. It is tuned for speed: what was committed survives [Server.Kill], but not a
// crash of the machine.
package mariadb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	startTimeout = time.Minute          // until it answers, a recovery included
	stopTimeout  = 20 * time.Second     // from SIGTERM to SIGKILL
	pollInterval = 5 * time.Millisecond // between two looks at what another process does
)

// Options changes how a server runs. The zero Options is what most callers want.
type Options struct {
	Args   []string // further arguments of the server, such as "--log-bin"; they override the ones that it gets anyway
	Grants bool     // check rights; the only account is root@localhost, without a password
	Port   int      // also listen on this TCP port of 127.0.0.1; 0: on the Unix socket only
}

// Server is a private server. DSN may be called by several goroutines at once, the other methods by one at a time.
type Server struct {
	program program
	options Options
	dir     directory
	process *process // nil: doesn't run
}

// Start starts a server with nothing in it and returns once it answers. ctx bounds the start, not the server's life.
// The error of a machine without a server, and without apt to get one, names the package to install and the
// environment variable MAILRETENTION_DSN, which callers take a server of the user's from.
func Start(ctx context.Context, options Options) (*Server, error) {
	p, err := find(ctx)
	if err != nil {
		return nil, err
	}
	return launch(ctx, p, options)
}

func launch(ctx context.Context, p program, options Options) (*Server, error) {
	dir, err := newDirectory()
	if err != nil {
		return nil, err
	}
	s := &Server{program: p, options: options, dir: dir}
	err = s.fillDataDirectory(ctx)
	if err == nil {
		err = s.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// DSN returns the data source name of a database for [sql.Open]; "" selects none.
func (s *Server) DSN(database string) string {
	return s.config(database).FormatDSN()
}

func (s *Server) config(database string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "unix", s.dir.socket(), database
	return c
}

// Kill ends the server as a crash does (SIGKILL) and returns when it is gone. The data stays for [Server.Restart].
func (s *Server) Kill() error {
	return s.stop(syscall.SIGKILL)
}

// Restart starts the server again with the same data, socket and port, after shutting it down if it runs.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.stop(syscall.SIGTERM); err != nil {
		return err
	}
	return s.run(ctx)
}

// Close shuts the server down and removes its data. Twice is fine.
func (s *Server) Close() error {
	return errors.Join(s.stop(syscall.SIGTERM), s.dir.remove())
}

// run starts the process and waits until it answers.
func (s *Server) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not within %v", startTimeout))
	defer cancel()
	p, err := start(s.command())
	if err != nil {
		return fmt.Errorf("start %s: %w", s.program.path, err)
	}
	s.process = p
	c := s.config("")
	c.Logger = &mysql.NopLogger{} // a server that is not ready yet is no news
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for {
		refused := db.PingContext(ctx)
		if refused == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended at its start (%w): %s", s.program.path, cmp.Or(p.err, errors.New("exit status 0")), s.dir.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s doesn't answer: %w (%w): %s", s.program.path, context.Cause(ctx), refused, s.dir.logTail())
		case <-time.After(pollInterval):
		}
	}
}

// command is the server with its arguments, the caller's last, so that they win.
func (s *Server) command() *exec.Cmd {
	args := append(s.program.base(s.dir),
		"--socket="+s.dir.socket(), "--pid-file="+s.dir.pid(), "--log-error="+s.dir.log(),
		"--max-connections=1000", "--max-allowed-packet=64M", "--character-set-server=utf8mb4", "--innodb-buffer-pool-size=64M")
	if s.program.mysql {
		args = append(args, "--mysqlx=OFF", "--secure-file-priv="+s.dir.temporary())
	} else if !s.options.Grants {
		args = append(args, "--skip-grant-tables")
	}
	if s.options.Port == 0 {
		args = append(args, "--skip-networking")
	} else {
		args = append(args, "--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.options.Port))
	}
	// The context of a start must not end the server.
	cmd := s.program.command(context.Background(), append(args, s.options.Args...)...)
	cmd.ExtraFiles = []*os.File{s.dir.lock} // the directory counts as in use for as long as the server lives
	return cmd
}

// stop sends the signal and waits until the process is gone; one that doesn't heed it is killed.
func (s *Server) stop(signal syscall.Signal) error {
	p := s.process
	if p == nil {
		return nil
	}
	s.process = nil
	err := p.signal(signal)
	select {
	case <-p.done:
		return err
	case <-time.After(stopTimeout):
		err = errors.Join(err, fmt.Errorf("%s was killed, as it didn't end within %v of %v", s.program.path, stopTimeout, signal), p.signal(syscall.SIGKILL))
		<-p.done
		return err
	}
}
