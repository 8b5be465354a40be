package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/lease"
)

func TestLeasesAreListedAndReleased(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "one", 2, mebibyte, 2, nil, nil)
	none := p.call("leases")
	require.Equal(t, exitDone, none.status, none)
	require.Contains(t, none.out, "No leases")

	require.Equal(t, exitDone, p.call("run").status)
	name := "retention/" + p.database(1)
	require.Regexp(t, name+` +free`, p.call("leases").out)

	held, err := p.leases().Acquire(t.Context(), name)
	require.NoError(t, err)
	require.Regexp(t, name+` +held, expires in (59s|1m0s) +the other one`, p.call("leases").out)

	no := p.answer("no\n", "leases", "release", name)
	require.Equal(t, exitFailed, no.status, no)
	require.NoError(t, held.Renew(t.Context()))

	yes := p.answer("yes\n", "leases", "release", name)
	require.Equal(t, exitDone, yes.status, yes)
	require.Contains(t, yes.err, "the other one stops")
	require.ErrorIs(t, held.Renew(t.Context()), lease.ErrLost)

	unknown := p.call("leases", "release", "retention/nobody")
	require.Equal(t, exitFailed, unknown.status)
	require.Contains(t, unknown.err, "leases lists them")
}

func TestLeasesAsJSON(t *testing.T) {
	p := newPostal(t)
	require.Equal(t, "[]\n", p.call("leases", "--json").out)
	p.addServerOf(1, "one", 2, mebibyte, 2, nil, nil)
	require.Equal(t, exitDone, p.call("run").status)
	var infos []lease.Info
	require.NoError(t, json.Unmarshal([]byte(p.call("leases", "--json").out), &infos))
	require.Len(t, infos, 1)
	require.False(t, infos[0].Active)
}

func TestReleasingAFreeLeaseDoesNothing(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "one", 2, mebibyte, 2, nil, nil)
	require.Equal(t, exitDone, p.call("run").status)
	o := p.call("leases", "release", "retention/"+p.database(1))
	require.Equal(t, exitDone, o.status, o)
	require.Contains(t, o.err, "It is free")
}
