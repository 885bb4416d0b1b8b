package temporalenv

import "go.temporal.io/sdk/client"

// ShowsCredentials reports whether a connection shows the server who calls. A server that answers one that does not lets in
// everybody who reaches it.
func ShowsCredentials(options client.Options) bool {
	tls := options.ConnectionOptions.TLS
	return options.Credentials != nil || options.HeadersProvider != nil ||
		tls != nil && (len(tls.Certificates) > 0 || tls.GetClientCertificate != nil)
}
