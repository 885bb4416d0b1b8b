package invocation

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/startertest"
)

// What lacks a permission is not started, and the command that grants it is named. Where that is not known, it is started with a warning;
// where nobody is there to ask, without one.
func TestWhatLacksAPermissionIsNotStarted(t *testing.T) {
	missing := func(messages ...string) (r api.PermissionsReport) {
		for _, text := range messages {
			r.Missing = append(r.Missing, preflight.Finding{Code: preflight.MissingPermission, Message: text})
		}
		return r
	}
	for name, c := range map[string]struct {
		server startertest.Asked
		code   int
		err    string
		warns  string
		asked  bool
	}{
		"nothing is missing": {startertest.Asked{Polled: true}, exit.OK, "", "", true},
		"two are missing": {
			startertest.Asked{Polled: true, Report: missing("may not evict: apply rbac.yaml", "may not delete: apply rbac-delete-pods.yaml")},
			exit.WouldStop, "plan kernel was not started: may not evict: apply rbac.yaml\nmay not delete: apply rbac-delete-pods.yaml", "", true,
		},
		"it could not be found out": {
			startertest.Asked{Polled: true, Report: api.PermissionsReport{Unchecked: "selfsubjectaccessreviews is\nforbidden"}}, exit.OK, "",
			"Warning: whether the worker may do all that plan kernel needs is not known: it could not be found out: selfsubjectaccessreviews is forbidden\n", true,
		},
		"the worker refuses the question": {
			startertest.Asked{Polled: true, Failure: temporal.NewNonRetryableApplicationError("drain.mode: unknown", api.ErrorInvalidSpec, nil)},
			exit.OK, "", "drain.mode: unknown\n", true,
		},
		"there is no worker": {startertest.Asked{}, exit.OK, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr bytes.Buffer
			a := New(Process{Stderr: &stderr})
			to := &Connection{Client: client.New(&c.server, client.Options{Now: time.Now})}
			in := api.PermissionsInput{Maintenance: json.RawMessage(`{"node":"any"}`)}
			err := to.Permitted(t.Context(), a, "plan kernel", in)
			if code := exit.CodeOf(err); code != c.code {
				t.Errorf("exit code %d, want %d: %v", code, c.code, err)
			}
			if (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("%v, want %q", err, c.err)
			}
			if c.warns == "" && stderr.Len() > 0 || !strings.HasSuffix(stderr.String(), c.warns) || strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("it warns %q, want %q", stderr.String(), c.warns)
			}
			if got, was := c.server.Input.(api.PermissionsInput); was != c.asked || was && string(got.Maintenance) != string(in.Maintenance) {
				t.Errorf("asked %v", c.server.Input)
			}
		})
	}
}

// Somebody who does not wait for the answer has started nothing.
func TestAnInterruptedQuestionStartsNothing(t *testing.T) {
	var stderr bytes.Buffer
	server := &startertest.Asked{Polled: true, Silent: true}
	to := &Connection{Client: client.New(server, client.Options{Now: time.Now})}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := to.Permitted(ctx, New(Process{Stderr: &stderr}), "plan kernel", api.PermissionsInput{}); err == nil || stderr.Len() > 0 {
		t.Errorf("%v, it warns %q", err, stderr.String())
	}
}
