package maintenanceoperator

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
)

// Options say whether and how a bridge serves maintenance-operator's objects.
type Options struct {
	// Namespace is that of maintenance-operator, where its lease and its configuration are. Empty serves none of its objects.
	Namespace string
	// Input is a JSON merge patch for the input of each maintenance.
	Input string
}

// Validate returns what is wrong with them.
func (o Options) Validate() error {
	if o.Input == "" {
		return nil
	}
	if o.Namespace == "" {
		return errors.New("--maintenance-operator-input needs --maintenance-operator")
	}
	_, _, err := inputOf(&objects.NodeMaintenance{
		ObjectMeta: metav1.ObjectMeta{Name: "any", UID: "any"},
		Spec:       objects.NodeMaintenanceSpec{NodeName: "any", RequestorID: "any", DrainSpec: &objects.DrainSpec{}},
	}, json.RawMessage(o.Input))
	if err != nil {
		return fmt.Errorf("--maintenance-operator-input: %w", err)
	}
	return nil
}
