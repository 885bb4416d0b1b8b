package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestWriteKubeconfig(t *testing.T) {
	p := mustPKI(t, t.TempDir())
	pair, err := p.client(adminUser, mastersGroup)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(path, "https://127.0.0.1:1234", adminUser, p.caPEM, pair); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:1234" || !bytes.Equal(config.CAData, p.caPEM) ||
		!bytes.Equal(config.CertData, pair.cert) || !bytes.Equal(config.KeyData, pair.key) {
		t.Errorf("read back another configuration: %+v", config)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v (%v): want only the kubeconfig", entries, err)
	}
}

func TestWriteFileLeavesTheOldOneOnFailure(t *testing.T) {
	dir := t.TempDir()
	occupied := filepath.Join(dir, "occupied")
	if err := os.MkdirAll(filepath.Join(occupied, "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(occupied, []byte("text"), 0o600); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v (%v): want no temporary file", entries, err)
	}
}
