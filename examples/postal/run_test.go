package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

const mebibyte = 1 << 20

// newInstallation has a server with all limits, one without, one with limits of 0, a broken one and a deleted one.
func newInstallation(t *testing.T) *postal {
	p := newPostal(t)
	p.addServerOf(1, "limits", 12, 10*mebibyte, 7, 50, 9)
	p.addServerOf(2, "for-ever", 12, 10*mebibyte, nil, nil, nil)
	p.addServerOf(3, "zero", 3, 10*mebibyte, 0, 0, 0)
	p.addServer(4, "broken", 7, 50, 9) // its database is missing
	p.addServerOf(5, "deleted", 12, 10*mebibyte, 1, 1, 1)
	p.exec("UPDATE servers SET deleted_at = UTC_TIMESTAMP() WHERE id = 5")
	return p
}

func TestRunKeepsEachServerInsideItsLimitsAndGoesOnPastABrokenOne(t *testing.T) {
	p := newInstallation(t)
	queued := p.addDay(1, 20, mebibyte)
	p.exec("INSERT INTO queued_messages (server_id, message_id) VALUES (1, ?), (2, ?)", queued, queued)

	o := p.call("run")

	require.Equal(t, exitPartly, o.status, o)
	require.Equal(t, 5, p.tables(1), "50 MiB hold the queued message's 1 MiB and 4 days of 10 MiB\n%v", o)
	require.Equal(t, 1, p.count(p.in(1, "messages")+" WHERE raw_table = '"+p.table(20)+"'"), "the queued message keeps its mail")
	require.Equal(t, 11, p.messages(1), "days 0 to 9 and the queued one")
	require.Equal(t, p.messages(1), p.count(p.in(1, "deliveries")))
	require.Equal(t, 12, p.tables(2))
	require.Equal(t, 12, p.messages(2))
	require.Equal(t, 2, p.tables(3), "today and yesterday stay")
	require.Equal(t, 12, p.tables(5), "Postal destroys a deleted server's database itself")
	require.Contains(t, o.out, "is message_db.database_name_prefix right")
	require.Contains(t, o.out, "3 servers done, 1 server not")

	again := p.call("run", "--server", "limits", "--server", "acme/zero", "--server", "2")
	require.Equal(t, exitDone, again.status, again)
	require.Contains(t, again.out, "nothing to do")
}

func TestRunIsHeldWhileAnotherHasTheLease(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "one", 4, mebibyte, 2, nil, nil)
	require.Equal(t, exitDone, p.call("run", "--max-drops", "9").status)
	p.addDay(1, 8, mebibyte)
	leases := p.leases()
	held, err := leases.Acquire(t.Context(), "retention/"+p.database(1))
	require.NoError(t, err)

	o := p.call("run")

	require.Equal(t, exitHeld, o.status, o)
	require.Contains(t, o.out, "another run does it")
	require.Equal(t, 4, p.tables(1))
	require.NoError(t, held.Release(t.Context()))
	require.Equal(t, exitDone, p.call("run").status)
	require.Equal(t, 3, p.tables(1))
}

// A Postal that stood still has nothing but old days: after a long outage a person decides.
func TestRunAfterALongOutageIsRefusedUntilAPersonAllowsItAndGoesStepByStep(t *testing.T) {
	p := newPostal(t)
	p.addServer(1, "asleep", 30, nil, 60)
	p.addDatabase(1)
	for ago := 205; ago > 165; ago-- {
		p.addDay(1, ago, mebibyte)
	}

	refused := p.call("run")
	require.Equal(t, exitRefused, refused.status, refused)
	require.Contains(t, refused.out, "run --server acme/asleep --allow-empty")
	require.Equal(t, 40, p.tables(1))
	require.Equal(t, 40, p.messages(1))
	require.Equal(t, exitRefused, p.call("plan").status)

	step := p.call("run", "--server", "asleep", "--allow-empty", "--max-drops", "15")
	require.Equal(t, exitPartly, step.status, step)
	require.Contains(t, step.out, "run again")
	require.Equal(t, 25, p.tables(1), step)

	last := p.call("run", "--server", "asleep", "--allow-empty")
	require.Equal(t, exitDone, last.status, last)
	require.Zero(t, p.tables(1), last)
	require.Zero(t, p.messages(1), last)
}

func TestAPersonIsShownThePlanAndAsked(t *testing.T) {
	for name, c := range map[string]struct {
		typed  string
		args   []string
		status int
		left   int
	}{
		"yes deletes":                {"yes\n", []string{"run"}, exitDone, 3},
		"no deletes nothing":         {"no\n", []string{"run"}, exitFailed, 6},
		"y is no yes":                {"y\n", []string{"run"}, exitFailed, 6},
		"the end of input is no yes": {"", []string{"run"}, exitFailed, 6},
		"--yes doesn't ask":          {"", []string{"run", "--yes"}, exitDone, 3},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPostal(t)
			p.addServerOf(1, "one", 6, mebibyte, 2, nil, nil)
			o := p.answer(c.typed, c.args...)
			require.Equal(t, c.status, o.status, o)
			require.Equal(t, c.left, p.tables(1), o)
			if len(c.args) == 1 {
				require.Contains(t, o.err, "3 of 6 tables go")
				require.Contains(t, o.err, "Carry this out?")
			}
		})
	}
}

func TestPostalCutDeletesTheMessagesOfOneDayMore(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "one", 7, mebibyte, nil, nil, 4)

	require.Equal(t, exitDone, p.call("run").status)
	require.Equal(t, 5, p.messages(1), "today and the 4 days before stay")

	require.Equal(t, exitDone, p.call("run", "--postal-cut").status)
	require.Equal(t, 4, p.messages(1), "Postal's own task deletes the day 4 days ago too")
}

func TestASettingThatCannotBeIsRefusedForThatServerAlone(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "negative", 4, mebibyte, -1, nil, nil)
	p.addServerOf(2, "good", 4, mebibyte, 2, nil, nil)

	o := p.call("run")

	require.Equal(t, exitRefused, o.status, o)
	require.Equal(t, 4, p.tables(1))
	require.Equal(t, 3, p.tables(2))
	require.Contains(t, o.out, "correct the limits in Postal")
}

func TestAnUnreadableQueueProtectsEverything(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "one", 6, mebibyte, 2, nil, 3)
	p.exec("DROP TABLE queued_messages")

	o := p.call("run")

	require.Equal(t, exitRefused, o.status, o)
	require.Equal(t, 6, p.tables(1), o)
	require.Equal(t, 6, p.messages(1), o)
}

// readerFunc does something before it answers.
type readerFunc func() string

func (f readerFunc) Read(p []byte) (int, error) { return copy(p, f()), io.EOF }

func TestAServerWhosePlanWasNotSeenIsLeftOut(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "seen", 6, mebibyte, 2, nil, nil)
	p.addServer(2, "unseen", 2, nil, nil)
	yes := readerFunc(func() string {
		p.addDatabase(2)
		for ago := 5; ago >= 0; ago-- {
			p.addDay(2, ago, mebibyte)
		}
		return "yes\n"
	})

	o := p.callIn(t.Context(), surroundings{in: yes, terminal: true}, "run")

	require.Equal(t, exitPartly, o.status, o)
	require.Equal(t, 3, p.tables(1), o)
	require.Equal(t, 6, p.tables(2), "its database was missing when the plan was shown\n%v", o)
}

func TestFlagsThatCannotBeAreAllNamed(t *testing.T) {
	p := newPostal(t)
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"numbers": {
			[]string{"--min-keep-days", "0", "--max-drops", "-1", "--parallel", "0", "--batch-time", "0s", "--pause", "NaN", "--throttle-lag", "-1s"},
			[]string{"--min-keep-days", "--max-drops", "--parallel", "--batch-time", "--pause", "--throttle-lag"},
		},
		"an empty rest for all servers": {[]string{"--allow-empty"}, []string{"--allow-empty needs --server"}},
		"a lag without a replica":       {[]string{"--throttle-lag", "10s"}, []string{"--replica"}},
		"a replica without a port":      {[]string{"--throttle-lag", "10s", "--replica", "db2"}, []string{"give host:port"}},
		"an unknown server":             {[]string{"--server", "nobody"}, []string{`no server "nobody"`}},
	} {
		t.Run(name, func(t *testing.T) {
			o := p.call(append([]string{"run"}, c.args...)...)
			require.Equal(t, exitFailed, o.status, o)
			for _, text := range c.want {
				require.Contains(t, o.err, text)
			}
		})
	}
}
