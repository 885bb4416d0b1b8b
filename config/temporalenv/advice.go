package temporalenv

import "strings"

// advices say which settings to look at, by what the error of a call to Temporal says. The first that fits counts: what the
// server says of our certificate comes before what we say of its.
var advices = []struct{ said, look string }{
	{"tls: certificate required", "The server asks for a client certificate that an authority of its own has signed: name one and its key with TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH (client_cert_path and client_key_path of the profile)."},
	{"tls: expired certificate", "The client certificate has expired: renew the files of TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH (client_cert_path and client_key_path of the profile)."},
	{"remote error: tls", "The server does not accept the client certificate: name one that is signed by an authority of the server's with TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH (client_cert_path and client_key_path of the profile)."},
	{"signed by unknown authority", "Name the authority that has signed the server's certificate with TEMPORAL_TLS_SERVER_CA_CERT_PATH (server_ca_cert_path of the profile)."},
	{"has expired or is not yet valid", "The server's certificate is not valid now: renew it on the server, or set the clock of this machine."},
	{"x509: ", "The server's certificate is for another name: set the one that it has with TEMPORAL_TLS_SERVER_NAME (server_name of the profile), or the address that it is for with TEMPORAL_ADDRESS."},
	{"first record does not look like a TLS handshake", "The server speaks plain text: set TEMPORAL_TLS=false (disabled in the profile's tls), or the address of one that speaks TLS with TEMPORAL_ADDRESS."},
	{"error reading server preface", "The server hung up at once. It may want TLS: set TEMPORAL_TLS=true, TEMPORAL_TLS_SERVER_CA_CERT_PATH, or what else of TEMPORAL_TLS_ it needs (tls of the profile)."},
	{"Request unauthorized", AdviceOfKey},
	{"Unauthenticated", AdviceOfKey},
	{"PermissionDenied", AdviceOfKey},
}

// AdviceOfKey is for whoever is refused.
const AdviceOfKey = "Give an API key that may use the namespace: in a file with DRYDOCK_TEMPORAL_API_KEY_FILE, or with TEMPORAL_API_KEY (api_key of the profile); or a client certificate with TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_TLS_CLIENT_KEY_PATH."

// Advice says what to look at in the settings after a call to Temporal has failed; it is empty if the error is not about them.
func Advice(err error) string {
	text := err.Error()
	for _, a := range advices {
		if strings.Contains(text, a.said) {
			return a.look
		}
	}
	return ""
}
