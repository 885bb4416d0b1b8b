package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const created = "2026-07-01T12:00:00+02:00"

// programs makes the files of images of both architectures.
func programs(t *testing.T) string {
	t.Helper()
	from := t.TempDir()
	for _, architecture := range []string{"amd64", "arm64"} {
		for _, file := range []string{"drydock", "drydock-worker", "drydock-bridge", "devcluster", "drydock.spdx.json", "drydock-worker.spdx.json", "drydock-bridge.spdx.json", "LICENSE", "folders/tmp/.keep", "libraries/lib64/libc.so.6"} {
			at := filepath.Join(from, architecture, file)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(architecture+" "+file), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(from, architecture, "folders/tmp"), 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	return from
}

func must(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String()
}

func TestTheSameProgramsGiveTheSameImage(t *testing.T) {
	one, another := t.TempDir(), t.TempDir()
	for _, to := range []string{one, another} {
		from := programs(t)
		old := time.Now().Add(-time.Duration(len(to)) * time.Hour)
		if err := os.Chtimes(filepath.Join(from, "amd64/drydock-worker"), old, old); err != nil {
			t.Fatal(err)
		}
		must(t, "build", "-from", from, "-to", to, "-version", "v1.0.0+x", "-created", created, "drydock", "drydock-cluster")
	}
	for _, file := range []string{"drydock-v1.0.0-x-amd64.tar", "drydock-cluster-v1.0.0-x-amd64.tar"} {
		a, errA := os.ReadFile(filepath.Join(one, file))
		b, errB := os.ReadFile(filepath.Join(another, file))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs (%v, %v)", file, errA, errB)
		}
	}
}

func TestImagesArePushedForAllArchitectures(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	from, images := programs(t), t.TempDir()
	for _, architecture := range []string{"amd64", "arm64"} {
		must(t, "build", "-from", from, "-to", images, "-version", "v1.0.0", "-created", created, "-arch", architecture, "-revision", "abc", "drydock", "drydock-cli")
	}
	must(t, "build", "-from", from, "-to", images, "-version", "v1.0.0-rc1", "-created", created, "drydock")
	digests := filepath.Join(t.TempDir(), "digests")
	said := must(t, "push", "-from", images, "-version", "v1.0.0", "-digests", digests, host+"/team", "drydock", "drydock-cli")
	written, err := os.ReadFile(digests)
	if err != nil || string(written) != said || strings.Count(said, " sha256:") != 2 {
		t.Fatalf("it says %q, and writes %q (%v)", said, written, err)
	}
	tag, err := name.NewTag(host + "/team/drydock:v1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := index.Digest(); err != nil || !strings.Contains(said, host+"/team/drydock "+digest.String()) {
		t.Errorf("its digest is %v (%v), and it says %s", digest, err, said)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatalf("%+v (%v)", manifest, err)
	}
	image, err := index.Image(manifest.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != "arm64" || config.Config.User != user || config.Config.Labels["org.opencontainers.image.revision"] != "abc" || config.Config.Cmd[0] != "drydock-worker" {
		t.Errorf("%+v (%v)", config, err)
	}
	content, err := io.ReadAll(mutate.Extract(image))
	if err != nil || !bytes.Contains(content, []byte("arm64 drydock-bridge")) || bytes.Contains(content, []byte("amd64")) {
		t.Errorf("it has %d bytes of the wrong architecture (%v)", len(content), err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	from := programs(t)
	for want, args := range map[string][]string{
		"usage":               nil,
		"-created":            {"build", "-from", from, "-to", t.TempDir(), "-version", "v1", "drydock"},
		"there is no image x": {"build", "-from", from, "-to", t.TempDir(), "-version", "v1", "-created", created, "x"},
		"devtemporal":         {"build", "-from", from, "-to", t.TempDir(), "-version", "v1", "-created", created, "drydock-temporal"},
		"make images":         {"push", "-from", t.TempDir(), "-version", "v1", "registry.example.com/team", "drydock"},
		"REGISTRY":            {"push", "-from", from, "-version", "v1", "UPPER CASE", "drydock"},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}
