// Package temporalenv reads how to reach Temporal from the environment and from Temporal's configuration file, as every
// Temporal tool does: see https://docs.temporal.io/references/client-environment-configuration.
//
// The reading is envconfig's. This package says in its errors which file, variable or key is wrong, where envconfig passes
// over it or does not name it; it takes a variable that is empty for one that is not set, a certificate and its key one by
// path and one as data, and a default configuration file that cannot be read for none. Files of certificates, and of an API key,
// are read anew while a process runs.
package temporalenv

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"drydock.dev/drydock/config/payloadcodec"
)

// Environment looks up the variables of a process and lists them as NAME=VALUE. envconfig.EnvLookupOS is that of this one.
type Environment = envconfig.EnvLookup

// Options are the client options of a profile, with the environment's variables over it. An empty name is the profile in
// TEMPORAL_PROFILE, or "default"; only a profile that was asked for must exist. Errors name the variable or the key.
func Options(env Environment, name string) (client.Options, error) { return Reported(env, name, nil) }

// Reported are Options of a process that runs for long. It calls report when files that it reads anew cannot be read any more; what was
// read before is used then.
func Reported(env Environment, name string, report func(error)) (client.Options, error) {
	profile, err := load(env, name)
	if err != nil {
		return client.Options{}, err
	}
	set := given{Environment: env, noTLS: profile.TLS == nil}
	for _, variable := range []string{variableTLS, variableNoVerification} {
		if _, _, err := boolean(env, variable); err != nil {
			return client.Options{}, err
		}
	}
	if err := profile.ApplyEnvVars(set); err != nil {
		return client.Options{}, fmt.Errorf("the environment's variables for Temporal: %w", err)
	}
	key, err := apiKeyFile(env, &profile, report)
	if err != nil {
		return client.Options{}, err
	}
	var files *envconfig.ClientConfigTLS
	if profile.TLS != nil {
		files = new(*profile.TLS)
	}
	if err := readCertificates(profile.TLS); err != nil {
		return client.Options{}, err
	}
	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return options, err
	}
	// What Drydock sends is small: to compress it takes longer than to send it, on either side.
	options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	if err := renew(&options, files, report); err != nil {
		return options, err
	}
	if key != nil {
		key.apply(&options)
	}
	return options, encrypt(env, &options, report)
}

// encrypt has payloads encrypted where the environment names keys for that.
func encrypt(env Environment, options *client.Options, report func(error)) error {
	path, _ := env.LookupEnv(payloadcodec.VariableKeysFile)
	if path == "" {
		return nil
	}
	codec, err := payloadcodec.Open(path, report)
	if err != nil {
		return fmt.Errorf("%s: %w", payloadcodec.VariableKeysFile, err)
	}
	return payloadcodec.Apply(options, codec)
}

func load(env Environment, name string) (envconfig.ClientConfigProfile, error) {
	none := envconfig.ClientConfigProfile{}
	if name == "" {
		name, _ = env.LookupEnv("TEMPORAL_PROFILE")
	}
	path, _ := env.LookupEnv("TEMPORAL_CONFIG_FILE")
	chosen := path != ""
	path = cmp.Or(path, envconfig.DefaultConfigFilePath())
	var file envconfig.ClientConfig
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err != nil && !chosen:
		// A container's home may be no directory, or not to be read.
	case err != nil:
		return none, fmt.Errorf("the configuration file of Temporal: %w", err)
	default:
		if err := file.FromTOML(content, envconfig.ClientConfigFromTOMLOptions{}); err != nil {
			return none, fmt.Errorf("the configuration file of Temporal, %s: %w", path, err)
		}
	}
	profile := file.Profiles[cmp.Or(name, envconfig.DefaultConfigFileProfile)]
	switch {
	case profile != nil:
		return *profile, nil
	case name != "":
		return none, fmt.Errorf("there is no profile %s in the configuration file of Temporal, %s", name, path)
	default:
		return none, nil
	}
}

const (
	variableTLS            = "TEMPORAL_TLS"
	variableNoVerification = "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION"
)

// given are the variables that are not empty, booleans in the one way that envconfig reads.
type given struct {
	Environment
	// noTLS: the profile says nothing of TLS, so that to have hosts verified must not turn it on.
	noTLS bool
}

// LookupEnv implements envconfig.EnvLookup.
func (g given) LookupEnv(name string) (string, bool) {
	text, _ := g.Environment.LookupEnv(name)
	if name != variableTLS && name != variableNoVerification {
		return text, text != ""
	}
	value, set, _ := boolean(g.Environment, name)
	if name == variableNoVerification && !value && g.noTLS {
		return "", false
	}
	return strconv.FormatBool(value), set
}

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

// readCertificates puts the contents in the place of the paths and checks them. Its errors never have the key in them.
func readCertificates(t *envconfig.ClientConfigTLS) error {
	if t == nil || t.Disabled {
		return nil
	}
	for _, file := range []struct {
		key  string
		path *string
		data *[]byte
	}{
		{"client_cert", &t.ClientCertPath, &t.ClientCertData},
		{"client_key", &t.ClientKeyPath, &t.ClientKeyData},
	} {
		if err := read(file.key, file.path, file.data); err != nil {
			return err
		}
	}
	if (len(t.ClientCertData) > 0) != (len(t.ClientKeyData) > 0) {
		return errors.New("TLS to Temporal: of client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH) and key (TEMPORAL_TLS_CLIENT_KEY_PATH) one is missing: set both, or none")
	}
	if len(t.ClientCertData) > 0 {
		if _, err := tls.X509KeyPair(t.ClientCertData, t.ClientKeyData); err != nil {
			return fmt.Errorf("TLS to Temporal: the client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH) and its key (TEMPORAL_TLS_CLIENT_KEY_PATH): %w", err)
		}
	}
	if err := read("server_ca_cert", &t.ServerCACertPath, &t.ServerCACertData); err != nil {
		return err
	}
	if len(t.ServerCACertData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(t.ServerCACertData) {
		return errors.New("TLS to Temporal: server_ca_cert (TEMPORAL_TLS_SERVER_CA_CERT_PATH) has no certificate in PEM")
	}
	return nil
}

// read takes a file's contents in the place of its path.
func read(key string, path *string, data *[]byte) error {
	switch {
	case *path != "" && len(*data) > 0:
		return fmt.Errorf("TLS to Temporal: %s_path and %s_data are both given; want one", key, key)
	case *path == "":
		return nil
	}
	content, err := os.ReadFile(*path)
	if err != nil {
		return fmt.Errorf("TLS to Temporal: %s_path (TEMPORAL_TLS_%s_PATH): %w: %s", key, strings.ToUpper(key), err, mend(err))
	}
	*path, *data = "", content
	return nil
}

// mend says what to do about a file that cannot be read.
func mend(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("let user %d read it", os.Getuid())
	case errors.Is(err, fs.ErrNotExist):
		return "name a file that is there"
	default:
		return "name a file that has it"
	}
}
