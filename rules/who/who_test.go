package who_test

import (
	"testing"

	"drydock.dev/drydock/rules/who"
)

func TestSent(t *testing.T) {
	for want, c := range map[string]struct{ by, identity, principal string }{
		"unknown":                           {},
		"unknown (identity 7@host@)":        {identity: "7@host@"},
		"unknown (verified: user:ann)":      {identity: "7@host@", principal: "user:ann"},
		"ann":                               {by: "ann"},
		"ann@desk":                          {by: "ann@desk", identity: "ann@desk"},
		"ann (identity 7@host@)":            {by: "ann", identity: "7@host@"},
		"ann (verified: jwt:ann@acme.test)": {by: "ann", identity: "7@host@", principal: "jwt:ann@acme.test"},
	} {
		if got := who.Sent(c.by, c.identity, c.principal); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}

func TestStarted(t *testing.T) {
	for want, c := range map[string]struct{ identity, principal string }{
		"unknown":                      {},
		"ann@desk":                     {identity: "ann@desk"},
		"ann@desk (verified: jwt:ann)": {identity: "ann@desk", principal: "jwt:ann"},
		"unknown (verified: jwt:ann)":  {principal: "jwt:ann"},
	} {
		if got := who.Started(c.identity, c.principal); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}
