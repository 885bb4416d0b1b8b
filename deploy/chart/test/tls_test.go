package chart_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/deploy/devstack/pkitest"
)

// connectionAge is how long the server lets a connection live.
const connectionAge = 3 * time.Second

// guarded is a Temporal that wants mTLS and an API key, with the files of the server and of the test, which the Secrets show
// to the workers.
type guarded struct {
	*release
	server, callers string
}

// credentials are the files of one side.
func credentials(t *testing.T, by *pkitest.Authority, apiKey string) map[string]string {
	cert, key := by.Issue(t, time.Now().Add(time.Hour))
	return map[string]string{"tls.crt": cert, "tls.key": key, "ca.crt": by.PEM, "api-key": apiKey}
}

func (g *guarded) write(folder string, files map[string]string) {
	g.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			g.Fatal(err)
		}
	}
}

// renew has the server take nothing but what an authority has signed, and another API key, and callers have it.
func (g *guarded) renew(by *pkitest.Authority, apiKey string) map[string]string {
	g.Helper()
	g.write(g.server, credentials(g.T, by, apiKey))
	files := credentials(g.T, by, apiKey)
	g.write(g.callers, files)
	secrets := g.cluster.Client.CoreV1().Secrets(namespace)
	for name, keys := range map[string][]string{
		"temporal-ca": {"ca.crt"}, "drydock-client": {"tls.crt", "tls.key"}, "temporal-api-key": {"api-key"},
	} {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{}}
		for _, key := range keys {
			object.StringData[key] = files[key]
		}
		_, err := secrets.Create(g.ctx, object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = secrets.Update(g.ctx, object, metav1.UpdateOptions{})
		}
		if err != nil {
			g.Fatal(err)
		}
	}
	return files
}

// start runs the server, and has the release and the command line use it.
func (g *guarded) start(by *pkitest.Authority) {
	g.Helper()
	files := g.renew(by, "key-1")
	pair, err := tls.X509KeyPair([]byte(files["tls.crt"]), []byte(files["tls.key"]))
	if err != nil {
		g.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(by.Cert)
	temporal, err := devstack.StartTemporal(g.ctx, devstack.TemporalOptions{
		Dir: filepath.Join(g.server, "temporal"), Attributes: true, InMemory: true,
		Connection: client.Options{
			ConnectionOptions: client.ConnectionOptions{TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: authorities}},
			Credentials:       client.NewAPIKeyStaticCredentials("key-1"),
		},
		Environment: []string{
			"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + filepath.Join(g.callers, "ca.crt"), "TEMPORAL_TLS_CLIENT_CERT_PATH=" + filepath.Join(g.callers, "tls.crt"),
			"TEMPORAL_TLS_CLIENT_KEY_PATH=" + filepath.Join(g.callers, "tls.key"), "DRYDOCK_TEMPORAL_API_KEY_FILE=" + filepath.Join(g.callers, "api-key"),
		},
		Args: []string{
			"--tls-cert", filepath.Join(g.server, "tls.crt"), "--tls-key", filepath.Join(g.server, "tls.key"),
			"--tls-client-ca", filepath.Join(g.server, "ca.crt"), "--api-keys-file", filepath.Join(g.server, "api-key"),
			// Connections end soon, as those of a server do after some minutes, and what has been replaced is asked for.
			"--dynamic-config-value", fmt.Sprintf("frontend.keepAliveMaxConnectionAge=%q", connectionAge),
			"--dynamic-config-value", `frontend.keepAliveMaxConnectionAgeGrace="1s"`,
		},
	})
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(func() {
		temporal.Client.Close()
		if err := temporal.Stop(20 * time.Second); err != nil {
			g.Error(err)
		}
	})
	g.own = temporal
}

// shows reports whether the server has a certificate of an authority.
func (g *guarded) shows(by *pkitest.Authority) error {
	authorities := x509.NewCertPool()
	authorities.AddCert(by.Cert)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: authorities}}
	conn, err := dialer.DialContext(g.ctx, "tcp", g.own.Address)
	if err == nil {
		err = conn.Close()
	}
	return err
}

// The values of TLS and of an API key are those of a worker that does maintenances behind them, also after the Secrets have
// been renewed and the old certificates and the old key are accepted no more.
func TestAReleaseBehindTLS(t *testing.T) {
	g := &guarded{release: newRelease(t, "tls"), server: t.TempDir(), callers: t.TempDir()}
	g.start(pkitest.NewAuthority(t))
	g.install(loadChart(t), g.values(`
temporal:
  tls: {enabled: true, ca: {secret: temporal-ca}, client: {secret: drydock-client}}
  apiKey: {secret: temporal-api-key}
`))
	pods := g.workers()
	node := g.nodeWithout(pods)
	g.drydock("start", node, "--wait")

	second := pkitest.NewAuthority(t)
	g.renew(second, "key-2")
	g.kubelet.remount(pods)
	g.eventually("the server has its new certificate", func() error { return g.shows(second) })
	// The answer to a workflow task that was being carried out when the old key went is refused: until the task times out, after ten
	// seconds, the maintenance answers nobody.
	g.eventually("the maintenance answers by the new key", func() error {
		_, err := g.tryDrydock("status", node)
		return err
	})
	for began := time.Now(); time.Since(began) < 2*connectionAge; {
		g.drydock("done", node, "--wait")
		g.drydock("start", node, "--wait")
	}
	g.drydock("done", node, "--wait")
	names := func(pods []corev1.Pod) (all []string) {
		for _, pod := range pods {
			all = append(all, pod.Name)
		}
		slices.Sort(all)
		return all
	}
	if now := names(g.workers()); !slices.Equal(now, names(pods)) {
		t.Errorf("pods %v became %v", names(pods), now)
	}
}
