package starter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// nowhere is an environment in which neither Temporal nor Kubernetes is reachable.
func nowhere() []string {
	return []string{"TEMPORAL_ADDRESS=127.0.0.1:1", "TEMPORAL_CONFIG_FILE=/nonexistent", "KUBECONFIG=/nonexistent", invocation.EnvRequestor + "=ops"}
}

func runHere(t *testing.T, program string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Run(context.Background(), invocation.Process{
		Args: append([]string{program}, args...), Environ: nowhere(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &err,
	})
	return code, out.String(), err.String()
}

func TestExitCodesAndHints(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"unknown command":            {[]string{"stard"}, 2, []string{`unknown command "stard"`, "start", `Run "drydock --help"`}},
		"unknown flag":               {[]string{"start", "n", "--bogus"}, 2, []string{"unknown flag: --bogus", `Run "drydock start --help"`}},
		"flag of a wrong type":       {[]string{"start", "n", "--priority", "high"}, 2, []string{`--priority "high": want a whole number`}},
		"flag that is true or false": {[]string{"start", "n", "--force=si"}, 2, []string{`--force "si": want true or false`}},
		"no node":                    {[]string{"done"}, 2, []string{"missing NODE: done NODE"}},
		"two nodes":                  {[]string{"done", "a", "b"}, 2, []string{"one node at a time"}},
		"not a node name":            {[]string{"start", "a/b"}, 2, []string{`"a/b" is not a node name`}},
		"bad output":                 {[]string{"list", "-o", "xml"}, 2, []string{"want one of table, wide, json, yaml, name"}},
		"timeout without wait":       {[]string{"done", "n", "--timeout", "1m"}, 2, []string{"--timeout needs --wait"}},
		"negative timeout":           {[]string{"watch", "--timeout", "-1m"}, 2, []string{`--timeout "-1m": "-1m" is negative`}},
		"timeout in days":            {[]string{"watch", "--timeout", "1d12h"}, 1, []string{"is not reachable"}},
		"timeout in parsecs":         {[]string{"watch", "--timeout", "3pc"}, 2, []string{`"3pc" is not a duration`, `"2d"`}},
		"input in days":              {[]string{"start", "n", "--ready-timeout", "2d", "--escalation", "1d=notify", "--not-before", "3d"}, 1, []string{"is not reachable"}},
		"cluster with a slash":       {[]string{"list", "--cluster", "a/b"}, 2, []string{`cluster "a/b"`}},
		"unknown profile":            {[]string{"list", "--temporal-profile", "nope"}, 2, []string{"profile nope"}},
		"server away":                {[]string{"list"}, 1, []string{"127.0.0.1:1 is not reachable", "--address", "TEMPORAL_ADDRESS", "make demo"}},
		"nothing to change":          {[]string{"limits", "set"}, 2, []string{"nothing to change"}},
		"limits out of range":        {[]string{"limits", "set", "--max-unavailable", "120%"}, 2, []string{"--max-unavailable: 120% is more than all nodes: want a whole number such as 3, or a percentage from 0% to 100%\n"}},
		"unlimited unavailable":      {[]string{"limits", "set", "--max-unavailable", "unlimited"}, 2, []string{"--no-max-unavailable"}},
		"too many parallel":          {[]string{"limits", "set", "--max-parallel", "150%"}, 2, []string{`100%, or "unlimited"`}},
		"contradicting limits":       {[]string{"limits", "set", "--max-unavailable", "1", "--no-max-unavailable"}, 2, []string{"contradict"}},
		"diff without a file":        {[]string{"limits", "diff"}, 2, []string{"--config", invocation.EnvConfig}},
		"extend into the past":       {[]string{"extend", "n", "--for", "-1h"}, 2, []string{"--for"}},
		"escalate without a reason":  {[]string{"escalate", "n"}, 2, []string{"--comment"}},
		"escalate to nowhere":        {[]string{"escalate", "n", "--do", "explode", "--comment", "c"}, 2, []string{"want one of notify, bypassBudget, kill, giveBack, fail"}},
		"kill, nobody there":         {[]string{"escalate", "n", "--do", "kill", "--comment", "c"}, 2, []string{"no terminal to confirm on: pass --yes"}},
		"kill, agreed to":            {[]string{"escalate", "n", "--do", "kill", "--comment", "c", "--yes"}, 1, []string{"is not reachable"}},
		"notify, nobody there":       {[]string{"escalate", "n", "--do", "notify", "--comment", "c"}, 1, []string{"is not reachable"}},
		"consent to nothing":         {[]string{"consent", "n", "--comment", "x", "--yes"}, 2, []string{"--force, --delete-emptydir-data or both"}},
		"consent without a reason":   {[]string{"consent", "n", "--force", "--yes"}, 2, []string{"missing --comment"}},
		"consent to what is no pod":  {[]string{"consent", "n", "--force", "--comment", "x", "--pod", "web", "--yes"}, 2, []string{"want NAMESPACE/NAME"}},
		"consent of nobody":          {[]string{"consent", "n", "--force", "--comment", "x"}, 2, []string{"no terminal to confirm on: pass --yes"}},
		"reschedule to no time":      {[]string{"reschedule", "n"}, 2, []string{"--not-before"}},
		"reschedule to a wrong time": {[]string{"reschedule", "n", "--not-before", "tomorrow"}, 2, []string{"neither a time"}},
		"reschedule to the past":     {[]string{"reschedule", "n", "--not-before", "2020-01-01T00:00:00Z"}, 2, []string{"is over"}},
		"skip-pod of no pod":         {[]string{"drain", "skip", "n"}, 2, []string{"missing POD", "skip NODE POD", "NAMESPACE/NAME"}},
		"skip-pod of nothing":        {[]string{"drain", "skip"}, 2, []string{"missing NODE and POD"}},
		"skip-pod of two pods":       {[]string{"drain", "skip", "n", "a/b", "a/c"}, 2, []string{"one pod of one node"}},
		"skip-pod of what is no pod": {[]string{"drain", "skip", "n", "a/b/c"}, 2, []string{`"a/b/c" is not a pod`}},
		"hook-done of no hook":       {[]string{"hook", "done", "n"}, 2, []string{"missing HOOK: done NODE HOOK"}},
		"list of no phase":           {[]string{"list", "--phase", "Resting"}, 2, []string{`--phase "Resting"`, "Draining"}},
		"list in no order":           {[]string{"list", "--sort-by", "colour"}, 2, []string{"want one of attempt, created, node"}},
		"watch as yaml":              {[]string{"watch", "-o", "yaml"}, 2, []string{"want one of table, json"}},
		"retry-now, server away":     {[]string{"drain", "retry", "n"}, 1, []string{"is not reachable"}},
		"exec without dashes":        {[]string{"exec", "n", "true"}, 125, []string{"after --"}},
		"exec with a bad flag":       {[]string{"exec", "--bogus", "n", "--", "true"}, 125, []string{"unknown flag"}},
		"exec, server away":          {[]string{"exec", "n", "--", "true"}, 125, []string{"is not reachable"}},
		"exec of nothing":            {[]string{"exec", "n", "--"}, 125, []string{"Nothing follows --"}},
		"exec of what is not there":  {[]string{"exec", "n", "--", "no-such-command"}, 127, []string{"no-such-command", "nothing was started"}},
		"exec of what cannot run":    {[]string{"exec", "n", "--", "/etc/passwd"}, 126, []string{"permission denied", "nothing was started"}},
		"rollout without nodes":      {[]string{"rollout", "--", "true"}, 2, []string{"missing nodes"}},
		"rollout of two kinds":       {[]string{"rollout", "--all", "n", "--", "true"}, 2, []string{"missing nodes"}},
		"rollout with no place":      {[]string{"rollout", "n", "--max-parallel", "0", "--", "true"}, 2, []string{"--max-parallel 0"}},
		"rollout of a share":         {[]string{"rollout", "n", "--yes", "--max-parallel", "50%", "--", "true"}, 1, []string{"is not reachable"}},
		"rollout of a half-share":    {[]string{"rollout", "n", "--yes", "--max-parallel", "half", "--", "true"}, 2, []string{`--max-parallel: "half" is not an amount`}},
		"validated without a reason": {[]string{"validation", "pass", "n"}, 2, []string{"--comment why the node is good"}},
		"rollout with bad selector":  {[]string{"rollout", "-l", "a=b=c", "--", "true"}, 2, []string{"is not a label selector"}},
		"plan without a name":        {[]string{"plan", "create"}, 2, []string{"missing NAME"}},
		"plan of a wrong name":       {[]string{"plan", "pause", "Kernel"}, 2, []string{`"Kernel" is not the name of a plan`}},
		"plan without nodes":         {[]string{"plan", "create", "kernel"}, 2, []string{"missing nodes"}},
		"plan, nobody there":         {[]string{"plan", "create", "kernel", "a"}, 2, []string{"no terminal to confirm on: pass --yes"}},
		"plan on standard input":     {[]string{"plan", "create", "kernel", "a", "-f", "-"}, 2, []string{"standard input"}},
		"plan, server away":          {[]string{"plan", "create", "kernel", "a", "--yes"}, 1, []string{"is not reachable"}},
		"plan dry and waited for":    {[]string{"plan", "create", "kernel", "a", "--dry-run", "--wait"}, 2, []string{"--dry-run starts nothing"}},
		"health of nobody":           {[]string{"health", "status"}, 2, []string{"missing NAME: status NAME"}},
		"health of a wrong name":     {[]string{"health", "status", "Workers"}, 2, []string{`"Workers" is not the name of a health check`}},
		"health, paused why":         {[]string{"health", "pause", "workers"}, 2, []string{"missing --comment"}},
		"health, resumed whose":      {[]string{"health", "resume", "workers", "--of", "bob", "--all"}, 2, []string{"either --of or --all"}},
		"health, confirmed how":      {[]string{"health", "confirm", "worker-07"}, 2, []string{"missing --comment"}},
		"health from no file":        {[]string{"health", "start"}, 2, []string{"missing --file"}},
		"health from a missing file": {[]string{"health", "start", "-f", "/nonexistent"}, 2, []string{"/nonexistent"}},
		"health, server away":        {[]string{"health", "list"}, 1, []string{"is not reachable"}},
		"explain what is no node":    {[]string{"health", "explain", "a/b"}, 2, []string{`"a/b" is not a node name`}},
		"profile, server away":       {[]string{"profile", "list", "os-patching"}, 1, []string{"is not reachable"}},
		"profile of no node":         {[]string{"profile", "explain", "a/b"}, 2, []string{`"a/b" is not a node name`}},
		"profile from no file":       {[]string{"profile", "graph"}, 2, []string{"missing --file", `Run "drydock profile graph --help"`}},
		"profile from a wrong file":  {[]string{"profile", "lint", "testdata/history.golden"}, 2, nil},
		"former flag":                {[]string{"profile", "list", "--profile", "nope"}, 2, []string{"profile nope", "Note: --profile is now --temporal-profile"}},
		"former flag, not there":     {[]string{"start", "n", "--comment", "x"}, 2, []string{"unknown flag: --comment"}},
		"former name":                {[]string{"--address", "127.0.0.1:1", "skip-hook", "n", "h"}, 1, []string{`Note: "drydock skip-hook" is now "drydock hook skip"`, "is not reachable"}},
		"former name and flag":       {[]string{"failed", "n", "--reason", "x"}, 1, []string{`is now "drydock fail"`, "--reason is now --comment", "is not reachable"}},
		"former name, wrong flag":    {[]string{"validated", "n", "--bogus"}, 2, []string{"unknown flag: --bogus", `Run "drydock validation pass --help"`}},
		"a noun's wrong verb":        {[]string{"plan", "start", "p", "-f", "p.yaml"}, 2, []string{`unknown command "start" for "drydock plan"; did you mean create?`, `Run "drydock plan --help"`}},
		"a noun's misspelt verb":     {[]string{"health", "lst"}, 2, []string{`unknown command "lst" for "drydock health"; did you mean list?`}},
		"a noun that is a verb":      {[]string{"drain", "worker-01", "--force"}, 2, []string{`to drain a node: drydock start worker-01`}},
		"a noun and no verb":         {[]string{"audit", "x.jsonl"}, 2, []string{`unknown command "x.jsonl" for "drydock audit"`}},
		"a habit":                    {[]string{"cordon", "n"}, 2, []string{`unknown command "cordon": "drydock start NODE"`}},
		"the thaw":                   {[]string{"unfreeze"}, 2, []string{`unknown command "unfreeze": "drydock thaw"`}},
		"a stop":                     {[]string{"stop", "n"}, 2, []string{`unknown command "stop": "drydock cancel NODE"`}},
		"a delete":                   {[]string{"delete", "n"}, 2, []string{`unknown command "delete": "drydock cancel NODE"`}},
		"a node":                     {[]string{"node", "n"}, 2, []string{`unknown command "node": "drydock list"`, `"drydock status NODE"`}},
		"a finish":                   {[]string{"finish", "n"}, 2, []string{`unknown command "finish": "drydock done NODE"`}},
		"logs":                       {[]string{"logs", "n"}, 2, []string{`unknown command "logs": "drydock history NODE"`}},
		"a habit, to drain":          {[]string{"drain", "n", "--ignore-daemonsets"}, 2, []string{"drydock start n"}},
		"a habit, flags first":       {[]string{"drain", "--ignore-daemonsets", "n"}, 2, []string{"unknown flag: --ignore-daemonsets; to drain a node: drydock start NODE"}},
		"a verb with verbs":          {[]string{"plan", "schedule", "kernel", "--bogus"}, 2, []string{"unknown flag: --bogus\n"}},
		"no verb, but a flag":        {[]string{"work", "--bogus"}, 2, []string{"unknown flag: --bogus\n"}},
		"plan status of no plan":     {[]string{"plan", "status"}, 2, []string{"missing NAME: status NAME"}},
		"plan status of two":         {[]string{"plan", "status", "a", "b"}, 2, []string{"one plan at a time"}},
		"plan status of no state":    {[]string{"plan", "status", "a", "--state", "asleep"}, 2, []string{`--state "asleep": want one of waiting`}},
		"plan status in two ways":    {[]string{"plan", "status", "a", "--state", "held", "--all"}, 2, []string{"either --all or --state"}},
		"plan watched by a program":  {[]string{"plan", "status", "a", "-w", "-o", "json"}, 2, []string{"--watch is for people"}},
		"plan skip of no node":       {[]string{"plan", "skip", "a"}, 2, []string{"missing NODE: skip NAME NODE..."}},
		"plan skip of nothing":       {[]string{"plan", "skip"}, 2, []string{"missing NAME: skip NAME NODE..."}},
		"plan list, server away":     {[]string{"plan", "list"}, 1, []string{"is not reachable"}},
		"status of the cluster":      {[]string{"status"}, 1, []string{"is not reachable"}},
		"status of whose cluster":    {[]string{"status", "--requestor", "ops"}, 2, []string{"status NODE --requestor ops"}},
		"status of two nodes":        {[]string{"status", "a", "b"}, 2, []string{"one node at a time"}},
		"version":                    {[]string{"version"}, 0, nil},
		"help":                       {[]string{"help", "start"}, 0, nil},
		"completion of bash":         {[]string{"completion", "bash"}, 0, nil},
		"completion of no shell":     {[]string{"completion", "foo"}, 2, nil},
		"completion with no servers": {[]string{"__complete", "done", ""}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, stderr := runHere(t, "drydock", c.args...)
			if code != c.code {
				t.Errorf("exit code = %d, want %d\n%s", code, c.code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("standard error = %q, want %q in it", stderr, want)
				}
			}
		})
	}
}

func TestCodeOfErrors(t *testing.T) {
	failed, cancelled, timedOut := errors.New("x"), exit.WithCode(exit.Cancelled, errors.New("c")), exit.WithCode(exit.TimedOut, errors.New("t"))
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"none":                      {nil, 0},
		"any":                       {failed, 1},
		"coded, wrapped":            {fmt.Errorf("more: %w", cancelled), 3},
		"with a hint":               {exit.Hint(exit.UsageError("u"), "do this"), 2},
		"timed out":                 {fmt.Errorf("w: %w", exit.ErrTimedOut), 4},
		"interrupted":               {exit.ErrInterrupted, 130},
		"cancelled and timed out":   {errors.Join(cancelled, timedOut), 4},
		"cancelled and failed":      {errors.Join(cancelled, failed, timedOut), 1},
		"interrupted and cancelled": {errors.Join(cancelled, exit.ErrInterrupted), 130},
	} {
		if got := exit.CodeOf(c.err); got != c.want {
			t.Errorf("%s: code = %d, want %d", name, got, c.want)
		}
	}
}

func TestEndsHaveCodes(t *testing.T) {
	for end, want := range map[api.Phase]int{
		api.Completed: 0, api.Failed: 1, api.NodeGone: 1, api.Cancelled: 3,
	} {
		if got := exit.EndCode(end); got != want {
			t.Errorf("code of %s = %d, want %d", end, got, want)
		}
	}
}

func TestEveryCommandTeaches(t *testing.T) {
	root := newRoot(invocation.New(invocation.Process{Args: []string{"drydock"}}))
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if name := c.Name(); name == "help" || name == "completion" {
			return
		}
		if !c.Hidden && (c.Short == "" || c.Long == "" || c.Example == "") {
			t.Errorf("%s: Short, Long and Example are required", c.CommandPath())
		}
		if strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short is a phrase and ends without a full stop", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// A format that there is not is refused before a command does anything.
func TestEveryCommandChecksItsFormat(t *testing.T) {
	root := newRoot(invocation.New(invocation.Process{Args: []string{"drydock"}}))
	checked := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Flags().Lookup("output") != nil && c.Runnable() && c.Name() != "watch" { // whose formats are others
			if err := c.Flags().Set("output", "xml"); err != nil {
				t.Fatal(err)
			}
			if c.PreRunE == nil {
				t.Errorf("%s does not check --output", c.CommandPath())
			} else if err := c.PreRunE(c, nil); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), `--output "xml": want one of`) {
				t.Errorf("%s -o xml: %v", c.CommandPath(), err)
			}
			checked++
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	if checked < 30 {
		t.Errorf("only %d commands have --output", checked)
	}
}

func TestExamplesParse(t *testing.T) {
	root := newRoot(invocation.New(invocation.Process{Args: []string{"drydock"}}))
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			// What a shell would take out of the line is of no concern to flags.
			line, _, _ = strings.Cut(line, " | ")
			fresh := newRoot(invocation.New(invocation.Process{Args: []string{"drydock"}}))
			cmd, rest, err := fresh.Find(strings.Fields(strings.ReplaceAll(line, `"`, ""))[1:])
			if err != nil {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func TestHelpShowsFewCommandsFirstAndManyFlagsInGroups(t *testing.T) {
	_, first, _ := runHere(t, "drydock", "--help")
	_, all, _ := runHere(t, "drydock", "help", "all")
	_, start, _ := runHere(t, "drydock", "start", "--help")
	for want, in := range map[string]string{
		`"drydock help all" lists all`: first, "\n  plan ": first, "\n  validation ": all, "Exit codes:": all, "--temporal-profile": all,
		"Flags of the maintenance:\n": start, "Flags of the drain:\n": start, "Flags of times:\n": start,
	} {
		if !strings.Contains(in, want) {
			t.Errorf("no %q in\n%s", want, in)
		}
	}
	if listed := strings.Count(first[strings.Index(first, "Run maintenances:"):], "\n  "); listed > len(firstScreen)+3 { // help, and two flags
		t.Errorf("%d lines of commands on the first screen:\n%s", listed, first)
	}
	for name := range former {
		if strings.Contains(all, "\n  "+name+" ") {
			t.Errorf("help lists %s", name)
		}
	}
}

func TestEveryCommandThatIsNamedIsThere(t *testing.T) {
	root := newRoot(invocation.New(invocation.Process{Args: []string{"drydock"}}))
	for _, now := range former {
		if cmd, _, err := root.Find(strings.Fields(now)); err != nil || cmd.Hidden || !strings.HasSuffix(cmd.CommandPath(), now) {
			t.Errorf("%s is no command (%v)", now, err)
		}
	}
	for _, name := range firstScreen {
		if cmd, _, err := root.Find([]string{name}); err != nil || cmd.Name() != name {
			t.Errorf("%s is no command (%v)", name, err)
		}
	}
}

func TestHelpKnowsThePlugin(t *testing.T) {
	_, stdout, _ := runHere(t, "/usr/local/bin/kubectl-drydock", "done", "--help")
	for _, want := range []string{"kubectl drydock done NODE", "  kubectl drydock done worker-01"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("help has no %q:\n%s", want, stdout)
		}
	}
	if _, stdout, _ = runHere(t, "/usr/local/bin/drydock", "done", "--help"); strings.Contains(stdout, "kubectl") {
		t.Errorf("help speaks of kubectl:\n%s", stdout)
	}
	_, _, stderr := runHere(t, "kubectl-drydock", "stard")
	if !strings.Contains(stderr, `Run "kubectl drydock --help"`) {
		t.Errorf("standard error = %q", stderr)
	}
}

func TestInterruptedCommandSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	code := Run(ctx, invocation.Process{Args: []string{"drydock", "list"}, Environ: nowhere(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	if code != exit.Interrupted || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("code %d, standard error %q", code, errs.String())
	}
}
