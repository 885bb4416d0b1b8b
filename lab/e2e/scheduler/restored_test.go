package scheduler

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/e2e/site"
)

// standStill ends the worker and the Temporal server, does something to the server's files, and starts both again.
func standStill(s *site.Site, temporal *devstack.Temporal, do func() error) {
	s.Helper()
	s.StopWorker(s.Worker)
	temporal.Kill()
	if err := do(); err != nil {
		s.Fatal(err)
	}
	if err := temporal.Start(s.Ctx); err != nil {
		s.Fatal(err)
	}
	s.StartWorker()
}

// copyFiles copies the files of a folder, and no folder in it.
func copyFiles(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		data, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, entry.Name()), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// The database is restored to a state from before a node was maintained: nothing on the node tells that but what it keeps of its
// release. The maintenance waits until somebody says that it is to be done again.
func TestARestoredMaintenanceIsNotDoneTwice(t *testing.T) {
	t.Parallel()
	at, backup := filepath.Join(site.Shared.Dir, "restored-temporal"), filepath.Join(site.Shared.Dir, "restored-backup")
	temporal, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{Dir: at, Attributes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { site.Stop(temporal.Process) })
	s := site.PrepareOf(t, site.Shared.Lanes.Take(t), temporal, "")
	s.StartWorker()
	before := s.Imprint("worker-01")
	s.MustDrydock("freeze", "--by", "e2e", "--comment", "backup")
	run := s.Begin("worker-01")
	s.Until(run, api.Pending)
	standStill(s, temporal, func() error { return copyFiles(at, backup) })

	s.MustDrydock("thaw", "--by", "e2e")
	s.Until(run, api.Ready)
	s.Done(run)
	s.Back("worker-01", before)
	standStill(s, temporal, func() error { return errors.Join(os.RemoveAll(at), copyFiles(backup, at)) })

	s.Until(run, api.Pending)
	s.MustDrydock("thaw", "--by", "e2e")
	waits := s.UntilStatus(run, "waiting for somebody's word", func(status api.Status) bool {
		return strings.Contains(status.WaitingFor, "restored to an earlier state")
	})
	if waits.Phase != api.Cordoning || !strings.Contains(waits.WaitingFor, "drydock cancel worker-01") {
		t.Errorf("%s, %s", waits.Phase, waits.WaitingFor)
	}
	if shown := s.MustDrydock("status", "worker-01"); !strings.Contains(shown, api.GivenBackAnnotation) {
		t.Errorf("status does not say what to do:\n%s", shown)
	}
	if after := s.Imprint("worker-01"); after != before {
		t.Errorf("the node was touched: %s", after)
	}

	// Somebody says that it is to be done again.
	none := []byte(`{"metadata":{"annotations":{"` + api.GivenBackAnnotation + `":null}}}`)
	if _, err := s.Kube.CoreV1().Nodes().Patch(s.Ctx, "worker-01", types.MergePatchType, none, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Within(2*time.Minute, "it goes on", func() error {
		if status := s.MustStatus(run); status.Phase != api.Ready {
			return errors.New(string(status.Phase))
		}
		return nil
	})
	s.Done(run)
	s.Back("worker-01", before)
}
