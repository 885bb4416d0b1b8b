// Command manifests writes what is made from other files: the chart's copies of permissions and rules, and from the chart the
// kustomize base of those who do without Helm.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/deploy/chart/test/rendered"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/deploy/kubernetes"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

// steps are in the order in which one needs what the other has written.
var steps = []func(root string) (map[string]string, error){copies, base}

func run() error {
	root, err := devstack.Root()
	if err != nil {
		return err
	}
	for _, step := range steps {
		files, err := step(root)
		if err != nil {
			return err
		}
		for name, content := range files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	kubernetesDir = kubernetes.Folder
	chartDir      = "deploy/chart"
	baseDir       = kubernetesDir + "/base"
	monitoringDir = "deploy/monitoring"
)

// copies are what the chart has from elsewhere: Helm reads nothing outside of a chart.
func copies(root string) (map[string]string, error) {
	sources, err := filepath.Glob(filepath.Join(root, kubernetesDir, "rbac*.yaml"))
	if err == nil && len(sources) == 0 {
		err = fmt.Errorf("%s has no permissions", kubernetesDir)
	}
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, source := range append(sources, filepath.Join(root, kubernetesDir, "admission.yaml")) {
		content, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		files[filepath.Join(chartDir, "rbac", filepath.Base(source))] = string(content)
	}
	bridge, err := kubernetes.Bridge()
	if err != nil {
		return nil, err
	}
	for _, source := range bridge.Files() {
		content, err := os.ReadFile(filepath.Join(root, kubernetesDir, source))
		if err != nil {
			return nil, err
		}
		name := filepath.Join(chartDir, "bridge", strings.TrimPrefix(source, "bridge/"))
		files[name] = string(content)
	}
	for _, source := range []string{
		"maintenance-operator/rbac.yaml", "pika/rbac.yaml", "pika/admission.yaml", "node-healthcheck/rbac.yaml", "node-healthcheck/admission.yaml",
		"kep/crd.yaml", "kep/rbac.yaml", "kep/admission.yaml",
	} {
		content, err := os.ReadFile(filepath.Join(root, kubernetesDir, source))
		if err != nil {
			return nil, err
		}
		files[filepath.Join(chartDir, "bridge", source)] = string(content)
	}
	shown, err := filepath.Glob(filepath.Join(root, monitoringDir, "dashboards", "*.json"))
	if err != nil {
		return nil, err
	}
	for _, source := range append(shown, filepath.Join(root, monitoringDir, "rules.yaml")) {
		content, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(filepath.Join(root, monitoringDir), source)
		if err != nil {
			return nil, err
		}
		files[filepath.Join(chartDir, "monitoring", name)] = string(content)
	}
	return files, nil
}

const made = "# Made from deploy/chart by `make manifests`: change that, or patch this in an overlay.\n"

const kustomization = made + `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [rbac.yaml, worker.yaml]
configMapGenerator:
  # Under a name with its hash, so that a change of it rolls the workers.
  - name: drydock-worker
    namespace: drydock
    files: [drydock.yaml]
`

// ofHelm are lines that say how an object was installed.
var ofHelm = regexp.MustCompile(`(?m)^ +annotations:\n +checksum/config: .*\n|^ +(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n`)

// base is the chart with its own values, without Helm.
func base(root string) (map[string]string, error) {
	c, err := loader.LoadDir(filepath.Join(root, chartDir))
	if err != nil {
		return nil, err
	}
	documents, err := rendered.Chart(c, rendered.Plain, nil)
	if err != nil {
		return nil, err
	}
	files := map[string]string{baseDir + "/kustomization.yaml": kustomization}
	worker := []string{strings.TrimSuffix(made, "\n")}
	for _, d := range documents {
		switch d.Object.GetKind() {
		case "ServiceAccount", "ClusterRole", "ClusterRoleBinding": // they are in rbac.yaml
		case "ConfigMap":
			content, found, err := unstructured.NestedString(d.Object.Object, "data", "drydock.yaml")
			if err != nil || !found {
				return nil, errors.Join(errors.New("the ConfigMap has no drydock.yaml"), err)
			}
			files[baseDir+"/drydock.yaml"] = content
		default:
			worker = append(worker, strings.TrimSpace(ofHelm.ReplaceAllString(d.Text+"\n", "")))
		}
	}
	// With its comments.
	rbac, err := os.ReadFile(filepath.Join(root, kubernetesDir, "rbac.yaml"))
	if err != nil {
		return nil, err
	}
	files[baseDir+"/rbac.yaml"] = string(rbac)
	files[baseDir+"/worker.yaml"] = worker[0] + "\n" + strings.Join(worker[1:], "\n---\n") + "\n"
	return files, nil
}

// stale are the files that are not what would be written, also those that nothing writes any more.
func stale(root string) ([]string, error) {
	var all []string
	for _, step := range steps {
		files, err := step(root)
		if err != nil {
			return nil, err
		}
		folders := map[string]bool{}
		for name, want := range files {
			folders[filepath.Dir(name)] = true
			got, err := os.ReadFile(filepath.Join(root, name))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			if err != nil || string(got) != want {
				all = append(all, name)
			}
		}
		for folder := range folders {
			entries, err := os.ReadDir(filepath.Join(root, folder))
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				if _, ok := files[filepath.Join(folder, entry.Name())]; !ok && !entry.IsDir() {
					all = append(all, filepath.Join(folder, entry.Name()))
				}
			}
		}
	}
	return all, nil
}
