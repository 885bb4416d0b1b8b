package kubernetes

import (
	"embed"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// BridgeAccount is the user that drydock-bridge is, and BridgeNamespace where the Lease of who leads is.
const (
	BridgeNamespace = "drydock"
	BridgeAccount   = "system:serviceaccount:" + BridgeNamespace + ":drydock-bridge"
)

//go:embed bridge/*.yaml crds/*.yaml
var bridgeFiles embed.FS

// The files of the bridge, in Folder.
const (
	bridgeRBAC      = "bridge/rbac.yaml"
	bridgeAdmission = "bridge/admission.yaml"
	bridgeRole      = "drydock-bridge"
	objectsGroup    = "drydock.dev"
)

// BridgeManifests are what drydock-bridge needs in a cluster.
type BridgeManifests struct {
	// Definitions are the CustomResourceDefinitions of the objects that the bridge serves: those that its role names.
	Definitions []Manifest
	// Account is the account of the bridge, with the roles of people and programs.
	Account Manifest
	// Policies say who may ask, and in whose name.
	Policies Manifest
}

// Manifest is a file with its objects, in their order.
type Manifest struct {
	// File is its name in Folder.
	File    string
	Objects []*unstructured.Unstructured
}

// Bridge returns the manifests of drydock-bridge.
func Bridge() (m BridgeManifests, err error) {
	if m.Account, err = manifest(bridgeRBAC); err != nil {
		return m, err
	}
	if m.Policies, err = manifest(bridgeAdmission); err != nil {
		return m, err
	}
	resources, err := served(m.Account)
	if err != nil {
		return m, fmt.Errorf("%s/%s: %w", Folder, bridgeRBAC, err)
	}
	for _, resource := range resources {
		one, err := manifest("crds/" + objectsGroup + "_" + resource + ".yaml")
		if err != nil {
			return m, err
		}
		m.Definitions = append(m.Definitions, one)
	}
	return m, nil
}

// Files returns the names of all files, in Folder.
func (m BridgeManifests) Files() []string {
	names := []string{m.Account.File, m.Policies.File}
	for _, d := range m.Definitions {
		names = append(names, d.File)
	}
	return names
}

// served returns the resources of Drydock's group that the role of the bridge lets it watch.
func served(account Manifest) (resources []string, err error) {
	for _, object := range account.Objects {
		if object.GetKind() != "ClusterRole" || object.GetName() != bridgeRole {
			continue
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.APIGroups, objectsGroup) && slices.Contains(rule.Verbs, "watch") {
				resources = append(resources, rule.Resources...)
			}
		}
	}
	if len(resources) == 0 {
		return nil, fmt.Errorf("ClusterRole %s has no rule to watch resources of %s", bridgeRole, objectsGroup)
	}
	slices.Sort(resources)
	return resources, nil
}

func manifest(file string) (m Manifest, err error) {
	content, err := bridgeFiles.ReadFile(file)
	if err != nil {
		return m, err
	}
	m.File = file
	if m.Objects, err = objects(string(content)); err != nil {
		return m, fmt.Errorf("%s/%s: %w", Folder, file, err)
	}
	return m, nil
}
