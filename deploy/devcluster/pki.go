package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// mastersGroup may do everything, and requests of its members are exempt from
// the API server's flow control.
const mastersGroup = "system:masters"

// keyPair is a certificate and its key, both as PEM.
type keyPair struct {
	cert, key []byte
}

// pki is what the cluster trusts. The CA and the service account key outlive a
// run, so that old kubeconfigs and tokens stay valid with the state they belong
// to; everything else is issued anew at each start.
type pki struct {
	dir    string
	caCert *x509.Certificate
	caKey  crypto.Signer
	caPEM  []byte
}

// Files under pki/, as the components' flags name them.
func (p *pki) caFile() string                  { return filepath.Join(p.dir, "ca.crt") }
func (p *pki) servingCert() string             { return filepath.Join(p.dir, "serving.crt") }
func (p *pki) servingKey() string              { return filepath.Join(p.dir, "serving.key") }
func (p *pki) etcdClientCert() string          { return filepath.Join(p.dir, "etcd-client.crt") }
func (p *pki) etcdClientKey() string           { return filepath.Join(p.dir, "etcd-client.key") }
func (p *pki) serviceAccountKey() string       { return filepath.Join(p.dir, "service-account.key") }
func (p *pki) serviceAccountPublicKey() string { return filepath.Join(p.dir, "service-account.pub") }

// openPKI loads or creates the CA and the service account keys in dir and
// writes the certificates that the components read from files.
func openPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the pki directory: %w", err)
	}
	p := &pki{dir: dir}
	if err := p.ensureCA(); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	if err := p.ensureServiceAccountKey(); err != nil {
		return nil, fmt.Errorf("service account key: %w", err)
	}
	serving, err := p.issue(servingTemplate())
	if err != nil {
		return nil, err
	}
	etcdClient, err := p.issue(clientTemplate("etcd-client", ""))
	if err != nil {
		return nil, err
	}
	return p, errors.Join(
		writeFile(p.servingCert(), serving.cert, 0o644), writeFile(p.servingKey(), serving.key, 0o600),
		writeFile(p.etcdClientCert(), etcdClient.cert, 0o644), writeFile(p.etcdClientKey(), etcdClient.key, 0o600),
	)
}

func (p *pki) ensureCA() error {
	keyFile := filepath.Join(p.dir, "ca.key")
	key, fresh, err := ensureKey(keyFile)
	if err != nil {
		return err
	}
	p.caKey = key
	if !fresh {
		if p.caPEM, err = os.ReadFile(p.caFile()); err == nil {
			p.caCert, err = parseCertificate(p.caPEM)
		}
		if err == nil || !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "devcluster-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := sign(template, template, key.Public(), key)
	if err != nil {
		return err
	}
	p.caPEM = encode("CERTIFICATE", der)
	if p.caCert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	return writeFile(p.caFile(), p.caPEM, 0o644)
}

func (p *pki) ensureServiceAccountKey() error {
	key, _, err := ensureKey(p.serviceAccountKey())
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writeFile(p.serviceAccountPublicKey(), encode("PUBLIC KEY", public), 0o644)
}

// client issues a certificate for a user, in a group unless that is empty.
func (p *pki) client(user, group string) (keyPair, error) {
	return p.issue(clientTemplate(user, group))
}

func clientTemplate(user, group string) *x509.Certificate {
	name := pkix.Name{CommonName: user}
	if group != "" {
		name.Organization = []string{group}
	}
	return &x509.Certificate{
		Subject:     name,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// servingTemplate is the certificate of every listener. etcd shows it as a
// client too: to its peers and, through its gateway, to itself.
func servingTemplate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "devcluster"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{
			"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local",
		},
		IPAddresses: []net.IP{net.ParseIP(loopback), net.ParseIP("::1")},
	}
}

func (p *pki) issue(template *x509.Certificate) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generate a key for %s: %w", template.Subject, err)
	}
	der, err := sign(template, p.caCert, key.Public(), p.caKey)
	if err != nil {
		return keyPair{}, fmt.Errorf("issue a certificate for %s: %w", template.Subject, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{cert: encode("CERTIFICATE", der), key: keyPEM}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // clocks that were set back
	template.NotAfter = time.Now().AddDate(10, 0, 0)
	return x509.CreateCertificate(rand.Reader, template, parent, public, signer)
}

// ensureKey loads the key of a file, or creates it and says so.
func ensureKey(path string) (key crypto.Signer, fresh bool, err error) {
	content, err := os.ReadFile(path)
	if err == nil {
		key, err := parseKey(content)
		if err != nil {
			return nil, false, fmt.Errorf("%s: %w", path, err)
		}
		return key, false, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, false, err
	}
	generated, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, false, err
	}
	content, err = encodeKey(generated)
	if err != nil {
		return nil, false, err
	}
	return generated, true, writeFile(path, content, 0o600)
}

func parseKey(content []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("holds no PEM block")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func parseCertificate(content []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, errors.New("the CA certificate holds no PEM block")
	}
	return x509.ParseCertificate(block.Bytes)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return encode("EC PRIVATE KEY", der), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// writeFile replaces a file in one step, so that no reader and no crash meets
// half of it.
func writeFile(path string, content []byte, mode os.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temp.Write(content)
	err = errors.Join(err, temp.Chmod(mode), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	return nil
}
