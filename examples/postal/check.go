package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mailretention/mailretention/internal/mysqlerr"
	"github.com/mailretention/mailretention/lease"
	"github.com/mailretention/mailretention/retention"
)

func checkCommand(world surroundings) *cobra.Command {
	o := defaultOptions()
	c := &cobra.Command{
		Use:   "check",
		Short: "Say today what would fail tonight: rights, clocks, versions, books; changes nothing",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withFleet(c, world, o, func(f *fleet) error { return check(c.Context(), world, f) })
		},
	}
	o.addCommon(c.Flags())
	o.addPlan(c.Flags())
	o.addThrottle(c.Flags())
	return c
}

// level says how bad a finding is.
type level string

const (
	levelOK    level = "ok"
	levelNote  level = "note"  // good to know
	levelFault level = "fault" // a run would fail, or some of it
)

// finding is one thing that was looked at.
type finding struct {
	Level   level  `json:"level"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy"` // "" if there is nothing to do
}

func check(ctx context.Context, world surroundings, f *fleet) error {
	findings := []finding{
		checkServer(ctx, "main database", f.main, f.mainDB),
		checkServer(ctx, "message databases", f.message, f.work),
	}
	findings = append(findings, f.checkRights(ctx)...)
	findings = append(findings, f.checkLeases(ctx), f.checkPostal(ctx))
	findings = append(findings, f.checkReplicas(ctx)...)
	results := f.plan(ctx)
	for _, r := range results {
		findings = append(findings, checkPlan(r)...)
	}
	if f.deleted() > 0 {
		findings = append(findings, finding{levelNote, "deleted servers", fmt.Sprintf("%d, skipped: Postal is about to destroy them", f.deleted()), ""})
	}
	return finishCheck(world, f, results, findings)
}

func finishCheck(world surroundings, f *fleet, results []result, findings []finding) error {
	document := struct {
		Findings []finding `json:"findings"`
		answer
	}{findings, newAnswer(f, results)}
	faulty := slices.ContainsFunc(findings, func(one finding) bool { return one.Level == levelFault })
	if faulty && document.ExitStatus == exitDone {
		document.ExitStatus = exitPartly
	}
	err := world.show(f, results, document, func(w io.Writer) { writeFindings(w, findings) })
	return finish(document.ExitStatus, err)
}

func writeFindings(w io.Writer, findings []finding) {
	faults := 0
	for _, one := range findings {
		fmt.Fprintf(w, "%-5s  %s: %s\n", one.Level, one.Subject, strings.ReplaceAll(one.Text, "\n", "\n       "))
		if one.Remedy != "" {
			fmt.Fprintf(w, "       → %s\n", one.Remedy)
		}
		if one.Level == levelFault {
			faults++
		}
	}
	if faults == 0 {
		fmt.Fprintln(w, "A run would go through.")
		return
	}
	fmt.Fprintf(w, "%s: a run would fail, or a part of it.\n", count(faults, "fault"))
}

const (
	mostSkew   = time.Hour       // beyond it a run is refused
	clockNoise = 2 * time.Second // a difference that is worth no line
)

// checkServer looks at a database server's version, clock and settings.
func checkServer(ctx context.Context, subject string, at endpoint, db *sql.DB) finding {
	var version, clock, mode, readOnly string
	before := time.Now()
	if err := db.QueryRowContext(ctx, selectServer).Scan(&version, &clock, &mode, &readOnly); err != nil {
		return finding{levelFault, subject, fmt.Sprintf("%s: %v", at.address(), err), "is the server up, and are host, port, username and password right?"}
	}
	local := before.Add(time.Since(before) / 2)
	server, err := time.ParseInLocation("2006-01-02 15:04:05.000000", clock, time.UTC)
	if err != nil {
		return finding{levelFault, subject, fmt.Sprintf("%s: its clock says %q", at.address(), clock), ""}
	}
	skew := server.Sub(local).Abs().Round(100 * time.Millisecond)
	one := finding{levelOK, subject, fmt.Sprintf("%s, version %s, clock %v off, sql_mode %q", at.address(), version, skew, mode), ""}
	switch {
	case readOnly != "0" && readOnly != "OFF":
		one.Level, one.Remedy = levelFault, "it is read-only, as a replica is: name the primary"
	case skew > mostSkew:
		one.Level, one.Remedy = levelFault, "set the clock that is wrong; until then every run is refused"
	case skew > clockNoise:
		one.Level, one.Remedy = levelNote, "set the clock that is wrong"
	case !tested(version):
		one.Level, one.Remedy = levelNote, "tested are MariaDB from 10.11 on and MySQL 9"
	}
	return one
}

// tested says whether the version is one of those that the packages are tested with.
func tested(version string) bool {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return false
	}
	if strings.Contains(version, "MariaDB") {
		return major > 10 || major == 10 && minor >= 11
	}
	return major >= 9
}

// checkRights looks for rights that the account of the message databases lacks.
func (f *fleet) checkRights(ctx context.Context) []finding {
	const subject = "rights"
	grants, account, err := readGrants(ctx, f.work)
	if err != nil {
		return []finding{{levelNote, subject, fmt.Sprintf("not known: %v", err), ""}}
	}
	rights := []string{"SELECT", "INSERT", "UPDATE", "DELETE", "DROP"}
	lacking := map[string]bool{}
	for _, s := range f.servers {
		for _, r := range missing(grants, s.Database, rights) {
			lacking[r] = true
		}
	}
	var findings []finding
	report := func(lacks []string, pattern string) {
		if len(lacks) > 0 {
			findings = append(findings, finding{levelFault, subject, account + " lacks " + strings.Join(lacks, ", ") + " on " + pattern, grantStatement(lacks, pattern, account)})
		}
	}
	var lacks []string
	for _, r := range rights {
		if lacking[r] {
			lacks = append(lacks, r)
		}
	}
	report(lacks, asPattern(f.prefix+"-server-")+"%")
	rights = []string{"SELECT", "INSERT", "UPDATE"}
	if _, err := f.leases.List(ctx); err != nil { // the first run makes them
		rights = append(rights, "CREATE")
	}
	report(missing(grants, f.leaseDatabase(), rights), asPattern(f.leaseDatabase()))
	if findings != nil {
		return findings
	}
	one := finding{levelOK, subject, account + " may do what a run needs", ""}
	if len(missing(grants, "", []string{"PROCESS"})) > 0 {
		one.Text += " (without PROCESS the size of a table that is not booked is an estimate)"
	}
	return []finding{one}
}

func readGrants(ctx context.Context, db *sql.DB) (grants []grant, account string, err error) {
	if err := db.QueryRowContext(ctx, selectAccount).Scan(&account); err != nil {
		return nil, "", err
	}
	lines, err := query(ctx, db, func(rows *sql.Rows) (line string, err error) {
		err = rows.Scan(&line)
		return line, err
	}, showGrants)
	return parseGrants(lines), account, err
}

// checkLeases looks whether another run is at work.
func (f *fleet) checkLeases(ctx context.Context) finding {
	const subject = "leases"
	infos, err := f.leases.List(ctx)
	switch {
	case errors.Is(err, lease.ErrNotProvisioned):
		return finding{levelOK, subject, "the first run makes database " + f.leaseDatabase(), ""}
	case mysqlerr.Is(err, mysqlerr.DatabaseDenied, mysqlerr.TableDenied):
		return finding{levelNote, subject, err.Error(), ""} // a fault of the rights, which says it all
	case err != nil:
		return finding{levelFault, subject, err.Error(), "make database " + f.leaseDatabase() + " available, or name another with --lease-database"}
	}
	var held []string
	for _, i := range infos {
		if i.Active {
			held = append(held, i.Name+" by "+i.Owner)
		}
	}
	if len(held) > 0 {
		return finding{levelNote, subject, "held now: " + strings.Join(held, ", "), ""}
	}
	return finding{levelOK, subject, fmt.Sprintf("%d in database %s, none held", len(infos), f.leaseDatabase()), ""}
}

// checkPostal looks whether Postal's own task is on.
func (f *fleet) checkPostal(ctx context.Context) finding {
	const subject = "Postal's own task"
	var next sql.NullString
	var soon sql.NullBool
	err := f.mainDB.QueryRowContext(ctx, selectPostalTask).Scan(&next, &soon)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return finding{levelNote, subject, "has not been scheduled yet; Postal will", "BESIDE-POSTAL.md says how to switch it off"}
	case err != nil:
		return finding{levelNote, subject, fmt.Sprintf("not known: %v", err), "BESIDE-POSTAL.md says what happens if both run"}
	case soon.Bool || !next.Valid:
		return finding{levelNote, subject, "runs next at " + next.String + " UTC", "BESIDE-POSTAL.md says what happens if both run, and how to switch it off"}
	}
	return finding{levelOK, subject, "is switched off until " + next.String, ""}
}

func (f *fleet) checkReplicas(ctx context.Context) []finding {
	var findings []finding
	for _, r := range f.lag.replicas {
		lag, err := replicaLag(ctx, r.db)
		if err != nil {
			findings = append(findings, finding{levelFault, "replica " + r.address, err.Error(), "the account needs REPLICATION CLIENT there (MariaDB: REPLICA MONITOR)"})
			continue
		}
		findings = append(findings, finding{levelOK, "replica " + r.address, fmt.Sprintf("%v behind", lag), ""})
	}
	return findings
}

// checkPlan says what a run would meet on one server.
func checkPlan(r result) []finding {
	subject := r.Server.String()
	one := finding{levelOK, subject, fmt.Sprintf("%d of %s would go (%s)", len(r.Plan.Drops), count(len(r.Plan.Drops)+len(r.Plan.Keeps), "raw table"), size(r.Plan.Bytes-r.Plan.BytesAfter)), ""}
	if r.err != nil {
		one = finding{levelFault, subject, r.err.Error(), r.advise()}
	}
	findings := []finding{one}
	for _, i := range r.Plan.Ignored {
		findings = append(findings, finding{levelNote, subject, "ignored: " + i.Name + ": " + i.Reason, ""})
	}
	for _, d := range r.Plan.Drift {
		findings = append(findings, finding{levelNote, subject, fmt.Sprintf("the books disagree: %s (%s): %s", d.Table, size(d.Bytes), driftWords(d.Kind)), "the next run mends it"})
	}
	for _, w := range r.Plan.Warnings {
		findings = append(findings, finding{levelNote, subject, w, ""})
	}
	return findings
}

func driftWords(k retention.DriftKind) string {
	switch k {
	case retention.DriftOrphan:
		return "booked, but there is no such table"
	case retention.DriftMissing:
		return "a table that is not booked"
	case retention.DriftDouble:
		return "booked more than once"
	case retention.DriftDangling:
		return "messages point at it, but there is no such table"
	}
	return "unknown"
}
