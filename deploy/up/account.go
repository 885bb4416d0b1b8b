package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/deploy/kubernetes"
	"drydock.dev/drydock/rules/setup"
)

// site is what drydock is told of where it works.
type site struct {
	options
	folder   folder
	cluster  *cluster
	temporal *devstack.Temporal
}

// drydock prepares the command line, with the user's own credentials.
func (s *site) drydock(ctx context.Context, args ...string) (*exec.Cmd, error) {
	path, err := devstack.Binary("drydock")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+strings.Join(s.cluster.files, string(filepath.ListSeparator)))
	cmd.Env = append(cmd.Env, s.temporal.Environment()...)
	cmd.Stdout, cmd.Stderr = s.out, os.Stderr
	return cmd, nil
}

// setup runs drydock setup, which says what it does.
func (s *site) setup(ctx context.Context, args ...string) error {
	cmd, err := s.drydock(ctx, append([]string{"setup", "--context", s.cluster.context, "--config", s.folder.path(configFile)}, args...)...)
	if err != nil {
		return err
	}
	s.say("$ drydock %s", strings.Join(cmd.Args[1:], " "))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("drydock setup: %w", err)
	}
	return nil
}

// apply makes what is missing. Where that is nothing a line says so: the table of what there is would be the same each time.
func (s *site) apply(ctx context.Context, account string) error {
	lacking, err := s.lacking(ctx, account)
	switch {
	case err != nil:
		return err
	case len(lacking) == 0:
		s.say("Nothing is missing in Temporal and in the cluster, and nothing was changed; \"drydock setup\" lists what is there.")
		return nil
	}
	return s.setup(ctx, append([]string{"--apply"}, as(account)...)...)
}

// as are the flags for an account; empty is the user's own.
func as(account string) []string {
	if account == "" {
		return nil
	}
	return []string{"--as", account}
}

// permissions are those that an account lacks.
func (s *site) permissions(ctx context.Context, account string) ([]setup.Item, error) {
	lacking, err := s.lacking(ctx, account)
	return slices.DeleteFunc(lacking, func(i setup.Item) bool { return i.Kind != setup.Permissions }), err
}

// lacking is what Drydock needs, with an account, and lacks.
func (s *site) lacking(ctx context.Context, account string) ([]setup.Item, error) {
	args := []string{"setup", "-o", "json", "--context", s.cluster.context, "--config", s.folder.path(configFile)}
	cmd, err := s.drydock(ctx, append(args, as(account)...)...)
	if err != nil {
		return nil, err
	}
	cmd.Stdout = nil
	data, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || len(data) == 0) {
		return nil, fmt.Errorf("drydock setup: %w", err)
	}
	var report setup.Report
	if err := json.Unmarshal(data, &report); err != nil {
		return nil, fmt.Errorf("drydock setup: %w", err)
	}
	return slices.DeleteFunc(report.Items, func(i setup.Item) bool { return !i.Lacks() }), nil
}

// prepare finds the account that the worker is to have, makes what is missing, and returns the account's name: empty for the
// user's own. A no is remembered.
func (s *site) prepare(ctx context.Context, r *state) (string, error) {
	lacking, err := s.permissions(ctx, kubernetes.Account)
	if err != nil {
		return "", err
	}
	account := kubernetes.Account
	switch {
	case slices.ContainsFunc(lacking, func(i setup.Item) bool { return i.Fix == "" }):
		s.say("The worker cannot have the account of %s: %s", kubernetes.Folder, lacking[0].Text)
		account = ""
	case len(lacking) > 0 && r.Declined && s.applyRBAC == nil:
		s.say("As you have said, the worker gets no account of its own (APPLY_RBAC=1 gives it one).")
		account = ""
	case len(lacking) > 0:
		apply, err := s.offer(lacking)
		if err != nil {
			return "", err
		}
		if !apply {
			account = ""
		}
		r.Declined = !apply && (s.asks || s.applyRBAC != nil)
	}
	if account == "" {
		s.say("The worker works with your own credentials of that context, and may do what you may.")
		return "", s.apply(ctx, "")
	}
	return account, s.apply(ctx, account)
}

// offer asks whether to apply the manifests of permissions, and shows what is in them.
func (s *site) offer(lacking []setup.Item) (bool, error) {
	parts, err := kubernetes.Parts()
	if err != nil {
		return false, err
	}
	s.say("\nThe worker can have an account of its own, with no more permissions than it needs. To be applied, as you:")
	for _, part := range parts {
		at := slices.IndexFunc(lacking, func(i setup.Item) bool { return i.Name == part.Name })
		if at < 0 {
			continue
		}
		s.say("  %s/%s", kubernetes.Folder, part.File)
		for _, object := range part.Objects {
			s.say("    %s %s", object.GetKind(), strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
		}
		s.say("    which grants %s", strings.TrimPrefix(lacking[at].Text, "not granted: "))
	}
	s.say("The worker then acts as %s, by impersonation with your credentials.", kubernetes.Account)
	switch {
	case s.applyRBAC != nil:
		return *s.applyRBAC, nil
	case !s.asks:
		s.say("APPLY_RBAC=1 applies it.")
		return false, nil
	}
	return s.confirm("Apply it?"), nil
}
