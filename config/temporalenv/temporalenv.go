// Package temporalenv reads how to reach Temporal from the environment and from Temporal's configuration file, as every
// Temporal tool does: see https://docs.temporal.io/references/client-environment-configuration.
package temporalenv

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"go.temporal.io/sdk/client"
)

// Environment looks up the variables of a process and lists them as NAME=VALUE.
type Environment interface {
	LookupEnv(name string) (string, bool)
	Environ() []string
}

// Process is the environment of this process.
type Process struct{}

// LookupEnv is os.LookupEnv.
func (Process) LookupEnv(name string) (string, bool) { return os.LookupEnv(name) }

// Environ is os.Environ.
func (Process) Environ() []string { return os.Environ() }

const defaultProfile = "default"

// profile is one table [profile.NAME] of the configuration file.
type profile struct {
	Address   string            `toml:"address"`
	Namespace string            `toml:"namespace"`
	APIKey    string            `toml:"api_key"`
	TLS       *profileTLS       `toml:"tls"`
	Metadata  map[string]string `toml:"grpc_meta"`
}

// profileTLS is the table [profile.NAME.tls]: of each pair of path and data one may be given.
type profileTLS struct {
	Disabled       *bool  `toml:"disabled"`
	CertPath       string `toml:"client_cert_path"`
	CertData       string `toml:"client_cert_data"`
	KeyPath        string `toml:"client_key_path"`
	KeyData        string `toml:"client_key_data"`
	CAPath         string `toml:"server_ca_cert_path"`
	CAData         string `toml:"server_ca_cert_data"`
	ServerName     string `toml:"server_name"`
	NoVerification bool   `toml:"disable_host_verification"`
}

// Options are the client options of a profile, with the environment's variables over it. An empty name is the profile in
// TEMPORAL_PROFILE, or "default"; only a profile that was asked for must exist. Errors name the variable or the key.
func Options(env Environment, name string) (client.Options, error) {
	p, err := load(env, name)
	if err != nil {
		return client.Options{}, err
	}
	if err := p.override(env); err != nil {
		return client.Options{}, err
	}
	return p.options()
}

func load(env Environment, name string) (profile, error) {
	asked, _ := env.LookupEnv("TEMPORAL_PROFILE")
	if name == "" {
		name = asked
	}
	var file struct {
		Profile map[string]profile `toml:"profile"`
	}
	path, chosen := pathOf(env)
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && !chosen:
		// A container's home may be no directory, or not to be read.
	case err != nil:
		return profile{}, fmt.Errorf("the configuration file of Temporal: %w", err)
	default:
		if err := toml.Unmarshal(content, &file); err != nil {
			return profile{}, fmt.Errorf("the configuration file of Temporal, %s: %w", path, err)
		}
	}
	p, found := file.Profile[cmp.Or(name, defaultProfile)]
	if !found && name != "" {
		return profile{}, fmt.Errorf("there is no profile %s in the configuration file of Temporal, %s", name, path)
	}
	return p, nil
}

// pathOf is where the configuration file is, and whether somebody chose that.
func pathOf(env Environment) (path string, chosen bool) {
	if path, _ := env.LookupEnv("TEMPORAL_CONFIG_FILE"); path != "" {
		return path, true
	}
	directory, err := os.UserConfigDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(directory, "temporalio", "temporal.toml"), false
}

// override puts the environment's variables over the profile.
func (p *profile) override(env Environment) error {
	secured := profileTLS{}
	if p.TLS != nil {
		secured = *p.TLS
	}
	before := secured
	for name, field := range map[string]*string{
		"TEMPORAL_ADDRESS": &p.Address, "TEMPORAL_NAMESPACE": &p.Namespace, "TEMPORAL_API_KEY": &p.APIKey,
		"TEMPORAL_TLS_CLIENT_CERT_PATH": &secured.CertPath, "TEMPORAL_TLS_CLIENT_CERT_DATA": &secured.CertData,
		"TEMPORAL_TLS_CLIENT_KEY_PATH": &secured.KeyPath, "TEMPORAL_TLS_CLIENT_KEY_DATA": &secured.KeyData,
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH": &secured.CAPath, "TEMPORAL_TLS_SERVER_CA_CERT_DATA": &secured.CAData,
		"TEMPORAL_TLS_SERVER_NAME": &secured.ServerName,
	} {
		if value, _ := env.LookupEnv(name); value != "" {
			*field = value
		}
	}
	if enabled, set, err := boolean(env, "TEMPORAL_TLS"); err != nil {
		return err
	} else if set {
		disabled := !enabled
		secured.Disabled = &disabled
	}
	if off, set, err := boolean(env, "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION"); err != nil {
		return err
	} else if set {
		secured.NoVerification = off
	}
	if p.TLS != nil || secured != before {
		p.TLS = &secured
	}
	p.overrideMetadata(env)
	return nil
}

// overrideMetadata reads TEMPORAL_GRPC_META_SOME_HEADER as the header some-header; an empty value removes it.
func (p *profile) overrideMetadata(env Environment) {
	metadata := map[string]string{}
	for key, value := range p.Metadata {
		metadata[headerName(key)] = value
	}
	for _, variable := range env.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		key, isHeader := strings.CutPrefix(name, "TEMPORAL_GRPC_META_")
		switch {
		case !isHeader || key == "":
		case value == "":
			delete(metadata, headerName(key))
		default:
			metadata[headerName(key)] = value
		}
	}
	p.Metadata = metadata
}

func headerName(key string) string { return strings.ReplaceAll(strings.ToLower(key), "_", "-") }

func boolean(env Environment, name string) (value, set bool, err error) {
	text, _ := env.LookupEnv(name)
	if text == "" {
		return false, false, nil
	}
	if value, err = strconv.ParseBool(text); err != nil {
		return false, false, fmt.Errorf("%s=%q: true or false is wanted", name, text)
	}
	return value, true, nil
}

func (p profile) options() (client.Options, error) {
	o := client.Options{HostPort: p.Address, Namespace: p.Namespace}
	if p.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(p.APIKey)
	}
	if len(p.Metadata) > 0 {
		o.HeadersProvider = headers(p.Metadata)
	}
	secured := profileTLS{}
	if p.TLS != nil {
		secured = *p.TLS
	}
	wanted := p.TLS != nil || p.APIKey != ""
	if secured.Disabled != nil {
		wanted = !*secured.Disabled
	}
	if wanted {
		config, err := secured.config()
		if err != nil {
			return client.Options{}, err
		}
		o.ConnectionOptions.TLS = config
	} else if secured.Disabled != nil {
		o.ConnectionOptions.TLSDisabled = true // the client would turn it on for an API key
	}
	return o, nil
}

// config reads the certificates. Its errors never have the key in them.
func (t profileTLS) config() (*tls.Config, error) {
	// To check no host is for development; who asks for it knows.
	config := &tls.Config{ServerName: t.ServerName, InsecureSkipVerify: t.NoVerification} //nolint:gosec // asked for
	cert, err := either("client_cert", t.CertPath, t.CertData)
	if err != nil {
		return nil, err
	}
	key, err := either("client_key", t.KeyPath, t.KeyData)
	if err != nil {
		return nil, err
	}
	if (len(cert) > 0) != (len(key) > 0) {
		return nil, errors.New("TLS to Temporal: of client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH) and key (TEMPORAL_TLS_CLIENT_KEY_PATH) one is missing")
	}
	if len(cert) > 0 {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("TLS to Temporal: the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	authorities, err := either("server_ca_cert", t.CAPath, t.CAData)
	if err != nil {
		return nil, err
	}
	if len(authorities) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, errors.New("TLS to Temporal: server_ca_cert (TEMPORAL_TLS_SERVER_CA_CERT_PATH) has no certificate in PEM")
		}
	}
	return config, nil
}

func either(key, path, data string) ([]byte, error) {
	switch {
	case path != "" && data != "":
		return nil, fmt.Errorf("TLS to Temporal: %s_path and %s_data are both given; one is wanted", key, key)
	case path == "":
		return []byte(data), nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("TLS to Temporal: %s_path (TEMPORAL_TLS_%s_PATH): %w", key, strings.ToUpper(key), err)
	}
	return slices.Clip(content), nil
}

// headers are added to every call.
type headers map[string]string

// GetHeaders implements client.Options.HeadersProvider.
func (h headers) GetHeaders(context.Context) (map[string]string, error) { return h, nil }
