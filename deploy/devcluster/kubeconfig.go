package main

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// adminUser is who the kubeconfig for people and tests speaks as.
const adminUser = "devcluster-admin"

// kubeletsUser is who speaks for all nodes.
const kubeletsUser = "devcluster-kubelets"

// writeKubeconfig writes a self-contained kubeconfig for the user.
func writeKubeconfig(path, server, user string, ca []byte, client keyPair) error {
	const name = "devcluster"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: client.cert, ClientKeyData: client.key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode the kubeconfig of %s: %w", user, err)
	}
	return writeFile(path, content, 0o600)
}

// newClient returns an unthrottled client: a cluster with thousands of nodes
// is built by as many requests as the API server takes.
func newClient(server string, ca []byte, client keyPair, userAgent string) (*kubernetes.Clientset, error) {
	config := &rest.Config{
		Host:            server,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: client.cert, KeyData: client.key},
		ContentConfig:   rest.ContentConfig{ContentType: "application/vnd.kubernetes.protobuf"},
		UserAgent:       userAgent,
		QPS:             -1,
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create the Kubernetes client: %w", err)
	}
	return clientset, nil
}
