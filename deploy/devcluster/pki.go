package main

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/pkiutil"
)

// keyAlgorithm is that of all keys: RSA keys take seconds to make on a busy machine.
const keyAlgorithm = kubeadm.EncryptionAlgorithmECDSAP256

// Names under which pkiutil finds its files.
const (
	caName             = "ca"
	serviceAccountName = "service-account"
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
// to; everything else is issued again at each start.
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
	serving, err := p.issue(servingConfig())
	if err != nil {
		return nil, err
	}
	etcdClient, err := p.client("etcd-client", "")
	if err != nil {
		return nil, err
	}
	return p, errors.Join(
		writeFile(p.servingCert(), serving.cert, 0o644), writeFile(p.servingKey(), serving.key, 0o600),
		writeFile(p.etcdClientCert(), etcdClient.cert, 0o644), writeFile(p.etcdClientKey(), etcdClient.key, 0o600),
	)
}

func (p *pki) ensureCA() error {
	known, err := exists(p.caFile())
	if err != nil {
		return err
	}
	if known {
		p.caCert, p.caKey, err = pkiutil.TryLoadCertAndKeyFromDisk(p.dir, caName)
	} else {
		p.caCert, p.caKey, err = pkiutil.NewCertificateAuthority(&pkiutil.CertConfig{
			Config:              certutil.Config{CommonName: "devcluster-ca", NotBefore: validSince()},
			EncryptionAlgorithm: keyAlgorithm,
		})
	}
	if err != nil {
		return err
	}
	p.caPEM = pkiutil.EncodeCertPEM(p.caCert)
	if known {
		return nil
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(p.caKey)
	if err != nil {
		return err
	}
	// The certificate is written last: as long as it is missing, nobody trusts
	// this authority, and the next start may make another.
	if err := writeFile(filepath.Join(p.dir, "ca.key"), key, 0o600); err != nil {
		return err
	}
	return writeFile(p.caFile(), p.caPEM, 0o644)
}

func (p *pki) ensureServiceAccountKey() error {
	known, err := exists(p.serviceAccountKey())
	if err != nil {
		return err
	}
	var key crypto.Signer
	if known {
		key, err = pkiutil.TryLoadKeyFromDisk(p.dir, serviceAccountName)
	} else {
		key, err = pkiutil.NewPrivateKey(keyAlgorithm)
	}
	if err != nil {
		return err
	}
	if !known {
		private, err := keyutil.MarshalPrivateKeyToPEM(key)
		if err != nil {
			return err
		}
		if err := writeFile(p.serviceAccountKey(), private, 0o600); err != nil {
			return err
		}
	}
	public, err := pkiutil.EncodePublicKeyPEM(key.Public())
	if err != nil {
		return err
	}
	return writeFile(p.serviceAccountPublicKey(), public, 0o644)
}

// client issues a certificate for a user, in a group unless that is empty.
func (p *pki) client(user, group string) (keyPair, error) {
	config := certutil.Config{CommonName: user, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if group != "" {
		config.Organization = []string{group}
	}
	return p.issue(config)
}

// servingConfig is the certificate of every listener. etcd shows it as a
// client too: to its peers and, through its gateway, to itself.
func servingConfig() certutil.Config {
	return certutil.Config{
		CommonName: "devcluster",
		Usages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		AltNames: certutil.AltNames{
			DNSNames: []string{
				"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			IPs: []net.IP{net.ParseIP(loopback), net.ParseIP("::1")},
		},
	}
}

func (p *pki) issue(config certutil.Config) (keyPair, error) {
	config.NotBefore = validSince()
	cert, key, err := pkiutil.NewCertAndKey(p.caCert, p.caKey, &pkiutil.CertConfig{
		Config: config, NotAfter: time.Now().AddDate(10, 0, 0), EncryptionAlgorithm: keyAlgorithm,
	})
	if err != nil {
		return keyPair{}, fmt.Errorf("issue a certificate for %s: %w", config.CommonName, err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encode the key of %s: %w", config.CommonName, err)
	}
	return keyPair{cert: pkiutil.EncodeCertPEM(cert), key: private}, nil
}

// validSince leaves room for clocks that were set back.
func validSince() time.Time { return time.Now().Add(-time.Hour) }

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
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
