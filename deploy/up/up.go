package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

// config is the worker's configuration the first time.
const config = `# The worker's configuration; docs/reference/configuration.md has every field. make up restarts the worker where it has changed.
scheduler:            # used when the scheduler is first started; then "drydock limits set" counts
  maxParallel: 1
  maxUnavailable: 20%%
audit:
  file: {path: %q}
`

// up runs what does not run yet.
func up(ctx context.Context, o options) error {
	own()
	f := folder(o.folder)
	lock, err := f.open()
	if err != nil {
		return err
	}
	defer lock.Close()
	remembered, err := f.load()
	if err != nil {
		return err
	}
	s := &site{options: o, folder: f}
	if s.cluster, err = findCluster(ctx, o.context, remembered); err != nil {
		return err
	}
	if err := s.cluster.settle(o, remembered); err != nil {
		return err
	}
	if remembered.ID == "" {
		remembered.ID = newID()
	}
	remembered.Kubeconfig, remembered.Context, remembered.Cluster = s.cluster.files, s.cluster.context, s.cluster.id
	if err := s.firstFiles(); err != nil {
		return err
	}
	if err := f.save(remembered); err != nil {
		return err
	}
	began, err := s.runTemporal(ctx, &remembered)
	if err != nil {
		return err
	}
	s.present(ctx, remembered.ID)
	account, programsBegan, err := s.runPrograms(ctx, &remembered)
	if err != nil {
		return fmt.Errorf("%w\nTemporal runs. make up tries again, make down stops what runs", err)
	}
	if !began && !programsBegan {
		o.say("\nEverything runs already; nothing was started.")
	}
	return s.tell(remembered, account)
}

// runPrograms makes sure that the worker and the bridge run, and returns the account of the worker.
func (s *site) runPrograms(ctx context.Context, r *state) (account string, began bool, err error) {
	if account, err = s.prepare(ctx, r); err != nil {
		return "", false, err
	}
	if err := s.folder.save(*r); err != nil {
		return "", false, err
	}
	kubeconfig, err := s.cluster.kubeconfig(account)
	if err == nil {
		err = s.folder.write(kubeconfigFile, kubeconfig)
	}
	if err != nil {
		return "", false, err
	}
	workerBegan, err := s.runWorker(ctx, r)
	if err != nil {
		return "", false, err
	}
	bridgeBegan, err := s.runBridge(ctx, r, account)
	if err != nil {
		err = fmt.Errorf("the bridge: %w (the worker runs; BRIDGE=0 goes on without a bridge)", err)
	}
	return account, workerBegan || bridgeBegan, errors.Join(err, s.folder.save(*r))
}

// own keeps out of the processes what the user's shell says of another Temporal and another Drydock.
func own() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "DRYDOCK_") && name != "DRYDOCK_BIN" {
			os.Unsetenv(name)
		}
	}
}

// firstFiles writes the files that the user may change, once.
func (s *site) firstFiles() error {
	if err := os.Setenv("TEMPORAL_CONFIG_FILE", s.folder.path(profileFile)); err != nil {
		return err
	}
	for name, content := range map[string]string{
		configFile:  fmt.Sprintf(config, s.folder.path("audit.jsonl")),
		profileFile: "# Temporal's own settings for what make up runs; the address is in the environment.\n",
	} {
		if _, err := os.Stat(s.folder.path(name)); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := s.folder.write(name, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

// ready finds out whether a service has to be started. One that was started from other files than there are now is stopped.
func (s *site) ready(ctx context.Context, is service, made string) (file *os.File, err error) {
	now, file, stale, err := is.look()
	switch {
	case err != nil:
		return nil, err
	case stale:
		s.say("%s has died, or the machine was restarted: it is started again.", is.name)
	case now == nil:
	case now.Made == made:
		s.say("%s runs already (process %d).", is.name, now.PID)
		return nil, nil
	default:
		s.say("%s was started from other files than there are now (process %d): it is started anew.", is.name, now.PID)
		if _, _, err := is.stop(ctx); err != nil {
			return nil, err
		}
		_, file, _, err = is.look()
	}
	return file, err
}

// runTemporal makes sure that Temporal runs.
func (s *site) runTemporal(ctx context.Context, r *state) (began bool, err error) {
	is := s.folder.service("temporal")
	binary, err := devstack.Binary("devtemporal")
	if err != nil {
		return false, err
	}
	made, err := madeOf(binary)
	if err != nil {
		return false, err
	}
	file, err := s.ready(ctx, is, made)
	if err != nil {
		return false, err
	}
	s.temporal = &devstack.Temporal{Address: loopback(r.Ports.Temporal)}
	if file == nil {
		return false, errors.Join(keeps(temporalPort, s.ports.Temporal, r.Ports.Temporal), keeps(uiPort, s.ports.UI, r.Ports.UI))
	}
	defer file.Close()
	if err := errors.Join(
		s.choose("Temporal", temporalPort, &r.Ports.Temporal, s.ports.Temporal, usual.Temporal, r.Ports),
		s.choose("Temporal's UI", uiPort, &r.Ports.UI, s.ports.UI, usual.UI, r.Ports),
		s.folder.save(*r),
	); err != nil {
		return false, err
	}
	s.say("Starting Temporal, with its database %s.", s.folder.path("temporal.db"))
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{
		Dir: string(s.folder), UI: true, Detach: true, Port: r.Ports.Temporal, UIPort: r.Ports.UI, Held: file,
	})
	if err != nil {
		if s.temporal != nil && s.temporal.Process != nil {
			s.temporal.Kill() // nobody knows of it yet
		}
		return false, err
	}
	return true, is.started(file, running{PID: s.temporal.PID(), Made: made})
}

// runWorker makes sure that a worker runs, with the present configuration and credentials.
func (s *site) runWorker(ctx context.Context, r *state) (began bool, err error) {
	is := s.folder.service("worker")
	binary, err := devstack.Binary("drydock-worker")
	if err != nil {
		return false, err
	}
	made, err := madeOf(binary, s.folder.path(configFile), s.folder.path(kubeconfigFile), s.folder.path(profileFile))
	if err != nil {
		return false, err
	}
	made += " " + s.temporal.Address
	// One that works is not stopped for one that would not start.
	if out, err := exec.CommandContext(ctx, binary, "--config", s.folder.path(configFile), "--check").CombinedOutput(); err != nil {
		return false, fmt.Errorf("the worker's configuration is refused, and a worker that runs was left alone:\n%s", bytes.TrimSpace(out))
	}
	file, err := s.ready(ctx, is, made)
	if err != nil {
		return false, err
	}
	if file == nil {
		return false, errors.Join(keeps(workerPort, s.ports.Worker, r.Ports.Worker), keeps(adminPort, s.ports.Admin, r.Ports.Admin), s.polls(ctx, "worker", r.Ports.Worker))
	}
	defer file.Close()
	if err := errors.Join(
		s.choose("the worker", workerPort, &r.Ports.Worker, s.ports.Worker, usual.Worker, r.Ports),
		s.choose("the worker's log level", adminPort, &r.Ports.Admin, s.ports.Admin, usual.Admin, r.Ports),
		s.folder.save(*r),
	); err != nil {
		return false, err
	}
	s.say("Starting drydock-worker.")
	worker, err := devstack.LaunchWorker(devstack.WorkerOptions{
		Dir: string(s.folder), Name: "worker", ConfigFile: s.folder.path(configFile), Kubeconfig: s.folder.path(kubeconfigFile),
		Temporal: s.temporal, Detach: true, Port: r.Ports.Worker, AdminPort: r.Ports.Admin, Held: file,
	})
	if err != nil {
		return false, err
	}
	if err := is.started(file, running{PID: worker.PID(), Made: made}); err != nil {
		return false, err
	}
	return true, worker.Ready(ctx)
}

// polls waits until a worker or a bridge that runs already is ready.
func (s *site) polls(ctx context.Context, name string, port int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(port)+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(response.Status)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the %s runs and is not ready: %w (see %s)", name, err, s.folder.path(name+".log"))
		}
	}
}

// choose settles on a port, and says where it is not the one that people would look for.
func (s *site) choose(what, variable string, port *int, wanted, usual int, others ports) error {
	before := *port
	chosen, err := choose(wanted, before, usual, slices.DeleteFunc(others.all(), func(other int) bool { return other == 0 || other == before }))
	if err != nil {
		return fmt.Errorf("%s, %s: %w", what, variable, err)
	}
	expected := usual
	if before != 0 {
		expected = before
	}
	if wanted == 0 && chosen != expected {
		s.say("Port %d is taken: %s has %d from now on.", expected, what, chosen)
	}
	*port = chosen
	return nil
}

// keeps refuses a port for what runs on another one.
func keeps(variable string, wanted, has int) error {
	if wanted == 0 || wanted == has {
		return nil
	}
	return fmt.Errorf("%s=%d: it runs on port %d: make down first, which keeps everything", variable, wanted, has)
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
