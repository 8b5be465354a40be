package mariadb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fillDataDirectory makes the server's files before its first start: a server that makes them in passing can't recover
// when it is killed before they reach the disk.
func (s *Server) fillDataDirectory(ctx context.Context) error {
	mode, sql := "--bootstrap", ""
	switch {
	case s.program.mysql:
		mode = "--initialize-insecure"
	case s.options.Grants:
		var err error
		if sql, err = s.program.grantSQL(); err != nil {
			return err
		}
	}
	cmd := s.program.command(ctx, append(s.program.base(s.dir), mode, "--log-error="+s.dir.log())...)
	cmd.Stdin = strings.NewReader(sql)
	p, err := start(cmd)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.program.path, err)
	}
	<-p.done
	if p.err != nil {
		return fmt.Errorf("%s %s: %w: %s", s.program.path, mode, p.err, s.dir.logTail())
	}
	return nil
}

// grantSQL makes the system tables, with root@localhost as the only account. A bootstrap reads one statement a line.
func (p program) grantSQL() (string, error) {
	var sql strings.Builder
	sql.WriteString("create database if not exists mysql;\nuse mysql;\nSET @auth_root_socket=NULL;\n")
	for _, name := range []string{"system_tables.sql", "performance_tables.sql", "system_tables_data.sql"} {
		text, err := os.ReadFile(filepath.Join(p.share(), "mysql_"+name))
		if errors.Is(err, os.ErrNotExist) {
			text, err = os.ReadFile(filepath.Join(p.share(), "mariadb_"+name)) // its name in newer servers
		}
		if err != nil {
			return "", fmt.Errorf("the SQL of the grant tables, which the server's package has beside the server: %w", err)
		}
		sql.Write(text)
	}
	return sql.String(), nil
}
