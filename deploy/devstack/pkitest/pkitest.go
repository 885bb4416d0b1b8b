// Package pkitest makes authorities and certificates for tests of TLS.
package pkitest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// PEM is its own certificate.
	PEM  string
	Cert *x509.Certificate

	key *ecdsa.PrivateKey
}

// NewAuthority makes an authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{}
	a.PEM, _, a.Cert, a.key = sign(t, nil, &x509.Certificate{
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// Issue signs a certificate of 127.0.0.1, and of the hosts, for clients and servers, that is valid until then; it and its key are in PEM.
func (a *Authority) Issue(t testing.TB, until time.Time, hosts ...string) (cert, key string) {
	t.Helper()
	cert, key, _, _ = sign(t, a, &x509.Certificate{
		NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
	return cert, key
}

// LoadAuthority reads an authority whose certificate and elliptic key are in PEM files, as those of devcluster.
func LoadAuthority(t testing.TB, certFile, keyFile string) *Authority {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("%s holds a %T", keyFile, pair.PrivateKey)
	}
	return &Authority{Cert: pair.Leaf, key: key}
}

// IssueUser signs a certificate by which an API server knows a user and the user's groups.
func (a *Authority) IssueUser(t testing.TB, user string, groups ...string) (cert, key string) {
	t.Helper()
	cert, key, _, _ = sign(t, a, &x509.Certificate{
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		Subject: pkix.Name{CommonName: user, Organization: groups},
	})
	return cert, key
}

// sign makes a certificate with a key of its own, which it is signed with where there is no authority.
func sign(t testing.TB, by *Authority, template *x509.Certificate) (certPEM, keyPEM string, cert *x509.Certificate, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	// Authorities of one name could not be told from each other where both are trusted.
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.Subject.CommonName == "" {
		template.Subject.CommonName = template.SerialNumber.String()
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.Cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certPEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return certPEM, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), cert, key
}
