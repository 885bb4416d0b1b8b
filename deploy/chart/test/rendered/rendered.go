// Package rendered renders the chart, as Helm does before it asks a cluster.
package rendered

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Release is where a chart is rendered for.
type Release struct{ Name, Namespace string }

// Plain is the release whose names are those of deploy/kubernetes.
var Plain = Release{Name: "drydock", Namespace: "drydock"}

// kubernetes is what charts are rendered for.
var kubernetes = common.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}

// Document is one object of a rendered chart.
type Document struct {
	// Template is the file's name below templates.
	Template string
	Text     string
	Object   *unstructured.Unstructured
}

// Chart renders a chart with values over its own; the documents come in the order of their templates' names.
func Chart(c *chart.Chart, to Release, values map[string]any) ([]Document, error) {
	files, err := render(c, to, values)
	if err != nil {
		return nil, err
	}
	var all []Document
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) != ".yaml" {
			continue
		}
		split := releaseutil.SplitManifests(files[name])
		keys := slices.Collect(maps.Keys(split))
		slices.SortFunc(keys, func(a, b string) int {
			if (releaseutil.BySplitManifestsOrder{a, b}).Less(0, 1) {
				return -1
			}
			return 1
		})
		for _, key := range keys {
			object := map[string]any{}
			if err := yaml.UnmarshalStrict([]byte(split[key]), &object); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, split[key])
			}
			if len(object) > 0 {
				all = append(all, Document{Template: path.Base(name), Text: split[key], Object: &unstructured.Unstructured{Object: object}})
			}
		}
	}
	return all, nil
}

// Notes are what Helm prints after an installation.
func Notes(c *chart.Chart, to Release, values map[string]any) (string, error) {
	files, err := render(c, to, values)
	return strings.TrimSpace(files[path.Join(c.Name(), "templates", "NOTES.txt")]), err
}

func render(c *chart.Chart, to Release, values map[string]any) (map[string]string, error) {
	capabilities := *common.DefaultCapabilities
	capabilities.KubeVersion = kubernetes
	all, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: to.Name, Namespace: to.Namespace, IsInstall: true, Revision: 1}, &capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}
