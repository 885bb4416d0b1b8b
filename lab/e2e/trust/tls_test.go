package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config/temporalenv"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/deploy/devstack/pkitest"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/starter/invocation"
)

// credentialFiles are the files of one side of mTLS, with an API key: of the server, or of those that call it.
type credentialFiles struct {
	*testing.T
	folder string
}

func newCredentialFiles(t *testing.T, by *pkitest.Authority, key string) credentialFiles {
	t.Helper()
	f := credentialFiles{t, t.TempDir()}
	f.renew(by, key)
	return f
}

func (f credentialFiles) path(name string) string { return filepath.Join(f.folder, name) }

func (f credentialFiles) set(name, content string) {
	f.Helper()
	// As a Secret's files are replaced: the name stands for the old content or for the new one.
	if err := errors.Join(os.WriteFile(f.path(name+".new"), []byte(content), 0o600), os.Rename(f.path(name+".new"), f.path(name))); err != nil {
		f.Fatal(err)
	}
}

// renew writes a certificate of an authority, the authority's own as the one that is trusted, and an API key.
func (f credentialFiles) renew(by *pkitest.Authority, key string) {
	f.Helper()
	f.certify(by, time.Now().Add(time.Hour))
	f.set("ca.crt", by.PEM)
	f.set("api-key", key+"\n")
}

func (f credentialFiles) certify(by *pkitest.Authority, until time.Time) {
	f.Helper()
	cert, key := by.Issue(f.T, until)
	f.set("tls.crt", cert)
	f.set("tls.key", key)
}

// environment has whoever is started call with these files.
func (f credentialFiles) environment() []string {
	return []string{
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + f.path("ca.crt"), "TEMPORAL_TLS_CLIENT_CERT_PATH=" + f.path("tls.crt"),
		"TEMPORAL_TLS_CLIENT_KEY_PATH=" + f.path("tls.key"), temporalenv.VariableAPIKeyFile + "=" + f.path("api-key"),
	}
}

// startGuarded runs a Temporal that only those reach who have the server's authority, a certificate of its own, and its key.
func startGuarded(t *testing.T, server, callers credentialFiles) *devstack.Temporal {
	t.Helper()
	options, err := temporalenv.Options(invocation.Environment(callers.environment()), "")
	if err != nil {
		t.Fatal(err)
	}
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{
		Dir: filepath.Join(site.Shared.Dir, "guarded-temporal"), Attributes: true, InMemory: true, Connection: options, Environment: callers.environment(),
		Args: []string{
			"--tls-cert", server.path("tls.crt"), "--tls-key", server.path("tls.key"), "--tls-client-ca", server.path("ca.crt"),
			"--api-keys-file", server.path("api-key"),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Stop(temporal.Process) })
	return temporal
}

// TestTemporalBehindTLS has maintenances be done where Temporal wants mTLS and an API key, and all of them replaced, so that the
// old ones are accepted no more, while a node is out of service.
func TestTemporalBehindTLS(t *testing.T) {
	t.Parallel()
	first, second := pkitest.NewAuthority(t), pkitest.NewAuthority(t)
	server, own := newCredentialFiles(t, first, "key-1"), newCredentialFiles(t, first, "key-1")
	temporal := startGuarded(t, server, own)
	s := site.PrepareOf(t, site.Shared.Lanes.Take(t), temporal, "")
	s.Sub("refused", func(s *site.Site) { refusedSettings(s, first) })

	cable := s.NewCable(temporal.Address)
	s.Options.Environment = []string{"TEMPORAL_ADDRESS=" + cable.Address}
	s.Connect(cable)
	s.StartWorker()
	s.MustDrydock("start", "worker-01", "--reason", "before", "--wait")

	server.renew(second, "key-2")
	own.renew(second, "key-2")
	old := newCredentialFiles(t, first, "key-1")
	s.Eventually("the server does not accept the old certificate", func() error {
		old.set("ca.crt", second.PEM)
		if r := drydockAs(s, old, "list"); r.Status != 1 || !strings.Contains(r.Out(), "TEMPORAL_TLS_CLIENT_CERT_PATH") {
			return errors.New(r.Out())
		}
		return nil
	})
	old.certify(second, time.Now().Add(time.Hour))
	s.Exits(drydockAs(s, old, "list"), 1, "refuses access", temporalenv.VariableAPIKeyFile)
	// The worker's next connection, as the server has it once the old one has its age.
	cable.Cut()
	s.Connect(cable)
	// What the worker said with the old key, after the server had the new one, was refused: such a task is given out again after ten seconds.
	s.Eventually("the maintenance is done", func() error {
		if r := s.Drydock("done", "worker-01", "--wait"); r.Status != 0 {
			return errors.New(r.Out())
		}
		return nil
	})
	s.MustDrydock("start", "worker-02", "--reason", "after", "--wait")

	// What is broken now is told, and what was read before is used.
	run := s.RunOf("worker-02")
	s.Until(run, api.Ready)
	own.set("api-key", "")
	good, err := os.ReadFile(own.path("tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	own.set("tls.key", "half of a k")
	cable.Cut()
	s.Connect(cable)
	s.Signal(run, api.MsgDone, nil)
	for _, told := range []string{"TEMPORAL_TLS_CLIENT_KEY_PATH", temporalenv.VariableAPIKeyFile} {
		s.Eventually("the worker tells of "+told, func() error {
			log, err := os.ReadFile(s.Worker.Log)
			for _, line := range strings.Split(string(log), "\n") {
				if strings.Contains(line, "what was read before is used") && strings.Contains(line, told) {
					return nil
				}
			}
			return errors.Join(errors.New("it does not"), err)
		})
	}
	own.set("api-key", "key-2")
	own.set("tls.key", string(good))
	s.Eventually("the maintenance ends", func() error {
		if r := s.Drydock("status", "worker-02"); !strings.Contains(r.Out(), string(api.Completed)) {
			return errors.New(r.Out())
		}
		return nil
	})
	if s.Starts != 1 {
		t.Errorf("the worker was started %d times", s.Starts)
	}
}

// drydockAs runs the command line with other files.
func drydockAs(s *site.Site, files credentialFiles, args ...string) site.Ran {
	s.Helper()
	cmd := s.Command("drydock", args...)
	cmd.Env = append(cmd.Env, files.environment()...)
	return s.Execute(cmd)
}

// refusedSettings has command line and worker say which setting is wrong, all at once: a parallel subtest would wait for its turn
// behind all other tests, while the site's time runs.
func refusedSettings(s *site.Site, authority *pkitest.Authority) {
	var all sync.WaitGroup
	defer all.Wait()
	stranger := pkitest.NewAuthority(s.T)
	for name, c := range map[string]struct {
		harm func(f credentialFiles) (environment []string)
		// ends is the worker's exit status, -1 for one that goes on trying.
		ends int
		says []string
	}{
		"another authority": {func(f credentialFiles) []string { f.set("ca.crt", stranger.PEM); return nil }, -1, []string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH", "server_ca_cert_path"}},
		"a stranger's certificate": {func(f credentialFiles) []string { f.certify(stranger, time.Now().Add(time.Hour)); return nil }, -1,
			[]string{"asks for a client certificate", "TEMPORAL_TLS_CLIENT_CERT_PATH", "client_cert_path"}},
		"an expired certificate": {func(f credentialFiles) []string { f.certify(authority, time.Now().Add(-time.Minute)); return nil }, -1,
			[]string{"has expired", "TEMPORAL_TLS_CLIENT_CERT_PATH"}},
		"no certificate": {func(credentialFiles) []string {
			return []string{"TEMPORAL_TLS_CLIENT_CERT_PATH=", "TEMPORAL_TLS_CLIENT_KEY_PATH="}
		}, -1, []string{"asks for a client certificate", "TEMPORAL_TLS_CLIENT_CERT_PATH"}},
		"another name":   {func(credentialFiles) []string { return []string{"TEMPORAL_TLS_SERVER_NAME=elsewhere"} }, -1, []string{"TEMPORAL_TLS_SERVER_NAME"}},
		"plain text":     {func(credentialFiles) []string { return []string{"TEMPORAL_TLS=false"} }, -1, []string{"TEMPORAL_TLS=true"}},
		"another key":    {func(f credentialFiles) []string { f.set("api-key", "key-0"); return nil }, -1, []string{temporalenv.VariableAPIKeyFile, "api_key"}},
		"no key at all":  {func(credentialFiles) []string { return []string{temporalenv.VariableAPIKeyFile + "="} }, -1, []string{temporalenv.VariableAPIKeyFile}},
		"an empty key":   {func(f credentialFiles) []string { f.set("api-key", "\n"); return nil }, 1, []string{temporalenv.VariableAPIKeyFile, "is empty"}},
		"a missing file": {func(f credentialFiles) []string { _ = os.Remove(f.path("tls.crt")); return nil }, 1, []string{"TEMPORAL_TLS_CLIENT_CERT_PATH", "client_cert_path", "no such file"}},
		"what is no key": {func(f credentialFiles) []string { f.set("tls.key", "half of a k"); return nil }, 1, []string{"TEMPORAL_TLS_CLIENT_KEY_PATH"}},
	} {
		all.Go(func() {
			s.Sub(name, func(s *site.Site) {
				files := newCredentialFiles(s.T, authority, "key-1")
				over := append(files.environment(), c.harm(files)...)
				status := 1
				if c.ends > 0 {
					status = 2
				}
				for _, args := range [][]string{{"list"}, {"setup", "--skip-kubernetes"}} {
					cmd := s.Command("drydock", args...)
					cmd.Env = append(cmd.Env, over...)
					s.Exits(s.Execute(cmd), status, c.says...)
				}
				workerSays(s, over, c.ends, c.says...)
			})
		})
	}
}

// workerSays has a worker with a wrong setting say so; it ends, or goes on trying (-1).
func workerSays(s *site.Site, environment []string, ends int, says ...string) {
	s.Helper()
	options := s.Options
	options.Name, options.Environment = fmt.Sprintf("refused-%d", site.Shared.Sites.Add(1)), environment
	w, err := devstack.LaunchWorker(options)
	if err != nil {
		s.Fatal(err)
	}
	defer w.Kill()
	s.Eventually("the worker says what is wrong", func() error {
		log := s.LogOf(w)
		for _, text := range says {
			if !strings.Contains(log, text) {
				return fmt.Errorf("it does not say %q but\n%s", text, log)
			}
		}
		return nil
	})
	if ends < 0 {
		if status := w.ExitStatus(); status != ends {
			s.Errorf("it has ended with %d", status)
		}
		return
	}
	<-w.Exited()
	if status := w.ExitStatus(); status != ends {
		s.Errorf("exit status %d, want %d", status, ends)
	}
}
