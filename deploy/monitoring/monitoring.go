// Package monitoring is what Prometheus and Grafana show of Drydock: alerts and dashboards.
package monitoring

import (
	"bytes"
	"embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Rules are the alerts, as a Prometheus reads them.
//
//go:embed rules.yaml
var Rules []byte

// Dashboards are those for Grafana, a JSON file each.
//
//go:embed dashboards/*.json
var Dashboards embed.FS

// header says where the manifest comes from.
const header = "# Made of rules.yaml: change it there, then UPDATE_GOLDEN=1 go test ./deploy/monitoring\n"

// PrometheusRule is the manifest of the alerts, as the Prometheus operator takes it.
func PrometheusRule() ([]byte, error) {
	var spec map[string]any
	if err := yaml.UnmarshalStrict(Rules, &spec); err != nil {
		return nil, fmt.Errorf("rules.yaml: %w", err)
	}
	body, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule",
		"metadata": map[string]any{"name": "drydock", "labels": map[string]any{"app.kubernetes.io/name": "drydock"}},
		"spec":     spec,
	})
	return bytes.Join([][]byte{[]byte(header), body}, nil), err
}
