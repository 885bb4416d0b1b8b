package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

func TestPKIVerifies(t *testing.T) {
	p := mustPKI(t, t.TempDir())
	roots := x509.NewCertPool()
	roots.AddCert(p.caCert)

	serving := mustReadCertificate(t, p.servingCert())
	for _, name := range []string{loopback, "localhost", "kubernetes.default.svc"} {
		_, err := serving.Verify(x509.VerifyOptions{
			DNSName: name, Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if err != nil {
			t.Errorf("the serving certificate does not hold for %s: %v", name, err)
		}
	}

	pair, err := p.client("alice", mastersGroup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(pair.cert, pair.key); err != nil {
		t.Errorf("certificate and key of a client do not belong together: %v", err)
	}
	client := mustParse(t, pair.cert)
	_, err = client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Errorf("the client certificate does not verify: %v", err)
	}
	if got := client.Subject; got.CommonName != "alice" || len(got.Organization) != 1 || got.Organization[0] != mastersGroup {
		t.Errorf("client certificate for %v, want alice in %s", got, mastersGroup)
	}
}

func TestPKIKeepsWhatOutlivesARun(t *testing.T) {
	dir := t.TempDir()
	first := mustPKI(t, dir)
	saKey := mustRead(t, first.serviceAccountKey())
	serving := mustRead(t, first.servingCert())

	second := mustPKI(t, dir)
	if !bytes.Equal(first.caPEM, second.caPEM) {
		t.Error("the CA changed with the second start")
	}
	if !bytes.Equal(saKey, mustRead(t, second.serviceAccountKey())) {
		t.Error("the service account key changed with the second start")
	}
	if bytes.Equal(serving, mustRead(t, second.servingCert())) {
		t.Error("the serving certificate was not issued again")
	}
}

func TestPKIKeysArePrivate(t *testing.T) {
	dir := t.TempDir()
	mustPKI(t, dir)
	keys, err := filepath.Glob(filepath.Join(dir, "*.key"))
	if err != nil || len(keys) != 4 {
		t.Fatalf("keys %v (%v), want 4", keys, err)
	}
	for _, key := range keys {
		info, err := os.Stat(key)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %v", key, mode)
		}
	}
}

func TestPKIRefusesBrokenFiles(t *testing.T) {
	dir := t.TempDir()
	mustPKI(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "ca.key"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openPKI(dir); err == nil {
		t.Error("a broken CA key was accepted")
	}
}

func mustPKI(t *testing.T, dir string) *pki {
	t.Helper()
	p, err := openPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func mustReadCertificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	return mustParse(t, mustRead(t, path))
}

func mustParse(t *testing.T, content []byte) *x509.Certificate {
	t.Helper()
	certificates, err := certutil.ParseCertsPEM(content)
	if err != nil {
		t.Fatal(err)
	}
	return certificates[0]
}
