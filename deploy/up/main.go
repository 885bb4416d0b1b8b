// Command up runs Drydock on this machine against a Kubernetes cluster of the user's: Temporal with its database on disk,
// its UI, a worker, and a bridge where one is wanted. They outlive it; what it finds running it leaves, and what has died it starts again.
package main

import (
	"bufio"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

func main() { os.Exit(run()) }

func run() int {
	down := flag.Bool("down", false, "stop what runs")
	look := flag.Bool("look", false, "find out whether the cluster answers, and do nothing else")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	name, act := "up", up
	switch {
	case *down:
		name, act = "down", stopAll
	case *look:
		act = reachable
	}
	o, err := optionsFrom(os.Getenv, os.Stdin, os.Stdout)
	if err == nil {
		err = act(ctx, o)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "\n%s: interrupted; make up goes on from here, make down stops what runs\n", name)
		return exit.Interrupted
	case err != nil:
		fmt.Fprintf(os.Stderr, "\n%s: %v\n", name, err)
		return 1
	}
	return 0
}

// Variables that name ports which must be used.
const (
	temporalPort = "TEMPORAL_PORT"
	uiPort       = "TEMPORAL_UI_PORT"
	workerPort   = "DRYDOCK_PORT"
	adminPort    = "DRYDOCK_ADMIN_PORT"

	bridgePort       = "DRYDOCK_BRIDGE_PORT"
	bridgeProbesPort = "DRYDOCK_BRIDGE_PROBES_PORT"
)

// options are what the command is told by variables, since make hands them on.
type options struct {
	// folder has everything that is kept.
	folder string
	// again is what make up and make down have to be told to find that folder once more.
	again string
	// context names the cluster; empty for the one of the last time, or else the current one.
	context string
	// yes answers the question whether it is the right cluster.
	yes bool
	// applyRBAC answers whether the manifests of permissions are to be applied; nil asks.
	applyRBAC *bool
	// wantsBridge says whether a bridge is to run; nil is as the last time.
	wantsBridge *bool
	// ports are those that have to be used; the others are free ones.
	ports ports
	input io.Reader
	// asks means that somebody is there to answer.
	asks bool
	out  io.Writer
}

func optionsFrom(getenv func(string) string, in *os.File, out io.Writer) (options, error) {
	o := options{folder: getenv("UP_DIR"), context: getenv("CONTEXT"), input: in, out: out}
	_, o.asks = terminal.Detect(in)
	if o.folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return o, err
		}
		o.folder = filepath.Join(cmp.Or(getenv("XDG_STATE_HOME"), filepath.Join(home, ".local", "state")), "drydock", "up")
	}
	var err error
	if o.folder, err = filepath.Abs(o.folder); err != nil {
		return o, err
	}
	if getenv("UP_DIR") != "" {
		o.again = " UP_DIR=" + quoted(o.folder)
	}
	for name, set := range map[string]func(bool){
		"YES": func(yes bool) { o.yes = yes }, "APPLY_RBAC": func(apply bool) { o.applyRBAC = &apply },
		"BRIDGE": func(wants bool) { o.wantsBridge = &wants },
	} {
		if text := getenv(name); text != "" {
			value, err := strconv.ParseBool(text)
			if err != nil {
				return o, fmt.Errorf("%s=%q: want 1 or 0", name, text)
			}
			set(value)
		}
	}
	for name, port := range map[string]*int{
		temporalPort: &o.ports.Temporal, uiPort: &o.ports.UI, workerPort: &o.ports.Worker, adminPort: &o.ports.Admin,
		bridgePort: &o.ports.Bridge, bridgeProbesPort: &o.ports.BridgeProbes,
	} {
		if text := getenv(name); text != "" {
			if *port, err = strconv.Atoi(text); err != nil || *port < 1 || *port > 65535 {
				return o, fmt.Errorf("%s=%q: want a port from 1 to 65535", name, text)
			}
		}
	}
	return o, nil
}

func (o options) say(format string, args ...any) { fmt.Fprintf(o.out, format+"\n", args...) }

// confirm asks a question that only yes answers with yes.
func (o options) confirm(question string) bool {
	fmt.Fprintf(o.out, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(o.input).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
