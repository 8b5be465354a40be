package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mailretention/mailretention/retention"
)

func TestPolicyOfPostalsLimits(t *testing.T) {
	for name, c := range map[string]struct {
		server server
		limits limits
		want   retention.Policy
	}{
		"NULL keeps for ever":           {server{}, limits{minKeepDays: 2}, retention.Policy{MinKeepDays: 2}},
		"the size is in MB":             {server{RawMegabytes: new(2048)}, limits{}, retention.Policy{RawBytes: new(int64(2 << 30))}},
		"0 leaves the protected days":   {server{RawDays: new(0), MessageDays: new(0)}, limits{}, retention.Policy{RawDays: new(0), MessageDays: new(0)}},
		"Postal's cut is one day more":  {server{MessageDays: new(60), RawDays: new(30)}, limits{postalCut: true}, retention.Policy{MessageDays: new(59), RawDays: new(30)}},
		"Postal's cut of 0":             {server{MessageDays: new(0)}, limits{postalCut: true}, retention.Policy{MessageDays: new(0)}},
		"Postal's cut of no limit":      {server{}, limits{postalCut: true}, retention.Policy{}},
		"a person allows an empty rest": {server{}, limits{allowEmpty: true}, retention.Policy{AllowEmpty: true}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.limits.policy(c.server)) })
	}
}

func TestChooseServers(t *testing.T) {
	all := []server{
		{ID: 1, Organization: "acme", Permalink: "mail"},
		{ID: 2, Organization: "other", Permalink: "mail"},
		{ID: 3, Organization: "acme", Permalink: "1"},
		{ID: 4, Organization: "acme", Permalink: "gone", deleted: true},
		{ID: 5, Organization: "acme", Permalink: "news"},
	}
	for name, c := range map[string]struct {
		names []string
		ids   []int64
		fault string
	}{
		"all but the deleted":           {nil, []int64{1, 2, 3, 5}, ""},
		"by ID":                         {[]string{"2"}, []int64{2}, ""},
		"by permalink":                  {[]string{"news"}, []int64{5}, ""},
		"by organization":               {[]string{"other/mail"}, []int64{2}, ""},
		"named twice":                   {[]string{"news", "5"}, []int64{5}, ""},
		"a permalink of two":            {[]string{"mail"}, nil, "acme/mail (ID 1), other/mail (ID 2)"},
		"an ID that is a permalink too": {[]string{"1"}, nil, "acme/mail (ID 1), acme/1 (ID 3)"},
		"a deleted one":                 {[]string{"4"}, nil, "is deleted"},
		"an unknown one":                {[]string{"x"}, nil, `no server "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(all, c.names)
			if c.fault != "" {
				require.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			var ids []int64
			for _, s := range chosen {
				ids = append(ids, s.ID)
			}
			require.Equal(t, c.ids, ids)
		})
	}
}

func TestAServerOfADeletedOrganizationIsSkipped(t *testing.T) {
	p := newPostal(t)
	p.addServerOf(1, "one", 4, mebibyte, 2, nil, nil)
	p.exec("UPDATE organizations SET deleted_at = UTC_TIMESTAMP()")
	o := p.call("run")
	require.Equal(t, exitDone, o.status, o)
	require.Equal(t, 4, p.tables(1))
}
