package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/internal/mysqltest"
)

func TestMain(m *testing.M) { mysqltest.Main(m) }

func TestQuickstartShowsTheStory(t *testing.T) {
	mysqltest.NoLeaks(t)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, mysqltest.DSN(t, ""), false))
	text := out.String()
	last := -1
	for _, words := range []string{
		"5 GB", badName, "in the queue", // planted
		"13 of 45 tables go", "in use", "Ignored", "orphan", "missing", // the plan
		"13 tables to drop", "is held by worker-1", "13 tables dropped", // two workers
		"nothing to do",          // again
		"all 6 checks passed.\n", // by SQL
	} {
		at := strings.Index(text[last+1:], words)
		require.NotEqual(t, -1, at, "%q is missing or too early in:\n%s", words, text)
		last += 1 + at
	}
	require.NotContains(t, text, "\x1b", "no colour where there is no terminal")
	var left int
	require.NoError(t, mysqltest.Open(t, "").QueryRowContext(t.Context(),
		"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", database).Scan(&left))
	require.Zero(t, left, "the database is dropped")
}

func TestQuickstartRefusesSomebodyElsesDatabase(t *testing.T) {
	db := mysqltest.Open(t, "")
	_, err := db.ExecContext(t.Context(), "CREATE DATABASE `"+database+"`")
	require.NoError(t, err)
	defer func() {
		_, err := db.Exec("DROP DATABASE `" + database + "`")
		require.NoError(t, err)
	}()
	var out bytes.Buffer
	require.ErrorContains(t, run(t.Context(), &out, mysqltest.DSN(t, ""), false), "stays untouched")
}

func TestQuickstartKeepsAndTakesUpItsOwnDatabase(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, mysqltest.DSN(t, ""), true))
	require.NoError(t, run(t.Context(), &out, mysqltest.DSN(t, ""), false))
}
