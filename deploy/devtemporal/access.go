package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
)

// lookEvery is how often the server looks whether the files of TLS have changed.
const lookEvery = time.Second

// access says how the frontend is reached, and by whom. Without any of it everybody may call, in plain text. The files are
// read anew while the server runs.
type access struct{ certificate, key, clientCA, apiKeys string }

func (a *access) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&a.certificate, "tls-cert", "", "file of the certificate that the gRPC and HTTP APIs are served with")
	flags.StringVar(&a.key, "tls-key", "", "file of its key")
	flags.StringVar(&a.clientCA, "tls-client-ca", "", "file of the authority that must have signed the certificates of clients (mTLS)")
	flags.StringVar(&a.apiKeys, "api-keys-file", "", "file of API keys, one a line: each call must bring one of them as its bearer token")
}

func (a access) check() error {
	if (a.certificate == "") != (a.key == "") {
		return errors.New("of --tls-cert and --tls-key one is missing")
	}
	if a.clientCA != "" && a.certificate == "" {
		return errors.New("--tls-client-ca: clients show certificates by TLS only: name a --tls-cert and its --tls-key")
	}
	if a.certificate != "" {
		if _, err := tls.LoadX509KeyPair(a.certificate, a.key); err != nil {
			return fmt.Errorf("--tls-cert and --tls-key: %w", err)
		}
	}
	for flag, path := range map[string]string{"--tls-client-ca": a.clientCA, "--api-keys-file": a.apiKeys} {
		if path == "" {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		}
	}
	return nil
}

// restricted tells whether the frontend cannot be called by just anybody.
func (a access) restricted() bool { return a != access{} }

// tls is that of the frontend. The server's own parts speak with each other in plain text.
func (a access) tls() config.RootTLS {
	if a.certificate == "" {
		return config.RootTLS{}
	}
	server := config.ServerTLS{CertFile: a.certificate, KeyFile: a.key}
	if a.clientCA != "" {
		server.ClientCAFiles, server.RequireClientAuth = []string{a.clientCA}, true
	}
	return config.RootTLS{Frontend: config.GroupTLS{Server: server}, RefreshInterval: lookEvery}
}

func (a access) authorizer() authorization.Authorizer {
	if a.apiKeys == "" {
		return authorization.NewNoopAuthorizer()
	}
	return authorization.NewDefaultAuthorizer()
}

func (a access) claimMapper() authorization.ClaimMapper {
	if a.apiKeys == "" {
		return authorization.NewNoopClaimMapper()
	}
	return apiKeys(a.apiKeys)
}

// apiKeys is a file of keys, each of which may do everything.
type apiKeys string

// GetClaims implements authorization.ClaimMapper: whoever brings no key of the file has no claim.
func (file apiKeys) GetClaims(caller *authorization.AuthInfo) (*authorization.Claims, error) {
	keys, err := os.Open(string(file))
	if err != nil {
		return nil, fmt.Errorf("--api-keys-file: %w", err)
	}
	defer keys.Close()
	lines := bufio.NewScanner(keys)
	for lines.Scan() {
		if key := strings.TrimSpace(lines.Text()); key != "" && caller.AuthToken == "Bearer "+key {
			return &authorization.Claims{System: authorization.RoleAdmin}, nil
		}
	}
	return nil, lines.Err()
}
