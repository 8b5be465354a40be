package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

func TestPageShowsWhatGoesAndWhatStays(t *testing.T) {
	p := newInstallation(t)
	queued := p.addDay(1, 20, mebibyte)
	p.exec("INSERT INTO queued_messages (server_id, message_id) VALUES (1, ?)", queued)
	p.exec("CREATE TABLE " + p.in(1, "raw-<b>") + " (id int)")
	path := filepath.Join(t.TempDir(), "plan.html")

	require.Equal(t, exitPartly, p.call("plan", "--html", path).status)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	page := string(text)
	for _, part := range []string{
		`<a href="#server-1">acme/<wbr>limits</a>`, "acme/for-ever", "acme/zero",
		`<a href="#server-4">acme/<wbr>broken</a> <span class="alarm">failed</span>`,
		"<b>80.0 MiB</b>8 days", "in use: ", "raw-&lt;b&gt;", "Raw mail now",
	} {
		require.Contains(t, page, part)
	}
	require.Equal(t, 13+12+3, strings.Count(page, `%" title="`), "a bar for each day")
	require.Contains(t, page, `title="no table from `+p.day(19).Format(time.DateOnly)+` to `+p.day(12).Format(time.DateOnly))
	for _, never := range []string{"<script", "http://", "https://", "src=", "@import", "url(", "acme/deleted", "ZgotmplZ"} {
		require.NotContains(t, page, never)
	}
	requireBalanced(t, page)
}

// requireBalanced checks that each element is closed where it should be.
func requireBalanced(t *testing.T, page string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(page))
	decoder.Strict = false
	decoder.AutoClose = xml.HTMLAutoClose
	decoder.Entity = xml.HTMLEntity
	depth := 0
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	require.Zero(t, depth)
}

func TestPageOfARunSaysWhatItDid(t *testing.T) {
	p := newInstallation(t)
	path := filepath.Join(t.TempDir(), "run.html")
	require.Equal(t, exitPartly, p.call("run", "--html", path).status)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), "7 tables dropped")
	require.Contains(t, string(text), "Dropped 8 raw tables")
}

func TestPlanAndRunAsJSON(t *testing.T) {
	p := newInstallation(t)
	for _, command := range []string{"plan", "run"} {
		o := p.call(command, "--json")
		require.Equal(t, exitPartly, o.status, o)
		var got struct {
			Servers []struct {
				Server server                             `json:"server"`
				Plan   struct{ Drops []any }              `json:"plan"`
				Report *struct{ Outcome, Stopped string } `json:"report"`
				Error  string                             `json:"error"`
				Advice string                             `json:"advice"`
			} `json:"servers"`
			ExitStatus int `json:"exit_status"`
		}
		require.NoError(t, json.Unmarshal([]byte(o.out), &got), o)
		require.Equal(t, exitPartly, got.ExitStatus)
		require.Len(t, got.Servers, 4)
		require.Len(t, got.Servers[0].Plan.Drops, 7)
		require.Equal(t, 50, *got.Servers[0].Server.RawMegabytes)
		require.Empty(t, got.Servers[0].Error)
		require.NotEmpty(t, got.Servers[3].Error)
		require.NotEmpty(t, got.Servers[3].Advice)
		require.Equal(t, command == "run", got.Servers[0].Report != nil)
	}
}

func TestPageOfATableWhoseSizeIsUnknown(t *testing.T) {
	day := testTime().Truncate(24 * time.Hour)
	plan := retention.Plan{Now: testTime(), Keeps: []retention.Keep{
		{Table: retention.Table{Name: "raw-2026-06-14", Day: day.AddDate(0, 0, -1)}, Reasons: []retention.Reason{retention.ReasonActive}},
		{Table: retention.Table{Name: "raw-2026-06-16", Day: day.AddDate(0, 0, 1), SizeKnown: true}, Reasons: []retention.Reason{retention.ReasonFuture}},
	}}
	path := filepath.Join(t.TempDir(), "plan.html")
	require.NoError(t, writePage(path, &fleet{}, []result{{Plan: plan}}))
	page := readText(t, path)
	require.Contains(t, page, `<i class="unknown" title="2026-06-14: size unknown, newest days, always kept">`)
	require.Contains(t, page, `<i class="gap" title="no table from 2026-06-15 to 2026-06-15">`)
	require.Contains(t, page, "0 B and 1 unknown")
	require.Contains(t, page, "a day to come")
	requireBalanced(t, page)
}
