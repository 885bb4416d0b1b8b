package bridge

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recording is what the objects of an operator showed when the operator itself served them.
type recording struct {
	operator string
	// program is the operator's own, built from its repository. With it a test records what the objects show; without it the test holds the
	// bridge to what was recorded.
	program string
	// file is named after the commit of the operator that was recorded.
	file string
}

// strands are what clients see of an object, each as the values that it had one after the other. Nothing says when it had them, nor in which
// order those of different strands came.
type strands map[string][]string

func (s strands) add(name, value string) {
	if all := s[name]; len(all) == 0 || all[len(all)-1] != value {
		s[name] = append(all, value)
	}
}

// start has the operator itself serve the objects.
func (r recording) start(b *bridged, env []string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Ctx, r.program, append(args, "--health-probe-bind-address", "0")...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+b.Lane.Cluster.Kubeconfig), env...)
	log, err := os.Create(filepath.Join(b.TempDir(), "operator.log"))
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			b.Error(err)
		}
		_ = cmd.Wait() // it was killed
		if text, err := os.ReadFile(log.Name()); b.Failed() {
			b.Logf("the operator's log: %v\n%s", err, text)
		}
	})
}

// watch follows the versions of the objects of a path from now on, with what happened to each: ADDED, MODIFIED or DELETED.
func (b *bridged) watch(sees func(kind string, version []byte), path ...string) {
	b.Helper()
	rest := b.Kube.CoreV1().RESTClient()
	var list metav1.PartialObjectMetadataList
	text, err := rest.Get().AbsPath(path...).Do(b.Ctx).Raw()
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		b.Fatal(err)
	}
	stream, err := rest.Get().AbsPath(path...).Param("watch", "true").Param("resourceVersion", list.ResourceVersion).Stream(b.Ctx)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = stream.Close() })
	go func() {
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var event struct {
				Type   string
				Object json.RawMessage
			}
			if json.Unmarshal(lines.Bytes(), &event) == nil {
				sees(event.Type, event.Object)
			}
		}
	}()
}

// holds records what was seen of the objects, or compares it with the recording.
func (r recording) holds(b *bridged, seen map[string]strands) {
	b.Helper()
	if r.program != "" {
		text, err := json.MarshalIndent(seen, "", "\t")
		if err == nil {
			err = os.WriteFile(r.file, append(text, '\n'), 0o644)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Skip("recorded")
	}
	text, err := os.ReadFile(r.file)
	var recorded map[string]strands
	if err == nil {
		err = json.Unmarshal(text, &recorded)
	}
	if err != nil || len(recorded) != len(seen) {
		b.Fatalf("%v: %d recordings; seen was %v", err, len(recorded), seen)
	}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		for _, strand := range slices.Sorted(maps.Keys(recorded[name])) {
			if got, want := seen[name][strand], recorded[name][strand]; !slices.Equal(got, want) {
				b.Errorf("%s: %s: %q, and %s shows %q", name, strand, got, r.operator, want)
			}
		}
	}
}
