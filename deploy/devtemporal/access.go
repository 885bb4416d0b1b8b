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

	"drydock.dev/drydock/deploy/devtemporal/roles"
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
	flags.StringVar(&a.apiKeys, "api-keys-file", "", "file of API keys, one a line, KEY [ROLE,... [NAME]]: each call must bring one of them as its bearer token; roles are reader, starter, approver, operator and worker, and a key without any may do everything")
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
	if a.apiKeys == "" {
		return nil
	}
	_, err := apiKeys(a.apiKeys).read()
	return err
}

// restricted reports whether the frontend cannot be called by just anybody.
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
	return roles.New(authorization.NewDefaultAuthorizer())
}

func (a access) claimMapper() authorization.ClaimMapper {
	if a.apiKeys == "" {
		return authorization.NewNoopClaimMapper()
	}
	return apiKeys(a.apiKeys)
}

// apiKeys is a file of keys with their roles and the names of those who have them. A key without roles may do everything.
type apiKeys string

// GetClaims implements authorization.ClaimMapper: whoever brings no key of the file has no claim.
func (file apiKeys) GetClaims(caller *authorization.AuthInfo) (*authorization.Claims, error) {
	token, _ := strings.CutPrefix(caller.AuthToken, "Bearer ")
	all, err := file.read()
	if claims, ok := all[token]; ok && err == nil {
		return claims, nil
	}
	return nil, err
}

// read returns the claims of each key.
func (file apiKeys) read() (map[string]*authorization.Claims, error) {
	keys, err := os.Open(string(file))
	if err != nil {
		return nil, fmt.Errorf("--api-keys-file: %w", err)
	}
	defer keys.Close()
	all := map[string]*authorization.Claims{}
	lines := bufio.NewScanner(keys)
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		claims, err := claimsOf(fields[1:])
		if err != nil {
			return nil, fmt.Errorf("--api-keys-file: line %d: %w", number, err)
		}
		all[fields[0]] = claims
	}
	return all, lines.Err()
}

// claimsOf reads what stands behind a key: roles, and a name that the server then vouches for.
func claimsOf(fields []string) (*authorization.Claims, error) {
	if len(fields) == 0 {
		return &authorization.Claims{System: authorization.RoleAdmin}, nil
	}
	if len(fields) > 2 {
		return nil, errors.New("want KEY [ROLE,... [NAME]]")
	}
	all, err := roles.Parse(fields[0])
	if err != nil {
		return nil, err
	}
	claims := &authorization.Claims{AuthType: "api-key", Extensions: roles.Granted{roles.Everywhere: all}}
	if len(fields) == 2 {
		claims.Subject = fields[1]
	}
	return claims, nil
}
