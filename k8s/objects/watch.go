package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Changed is the object of a watch as it is now, nil once it is gone.
type Changed struct{ Object *unstructured.Unstructured }

// Follow watches one object from a version on and calls report with each change, until the stream ends, as each does after some minutes, or
// ctx does. Only a Get shows what happened between two streams.
func (c *Client) Follow(ctx context.Context, kind Kind, namespace, name, version string, report func(Changed)) error {
	at, err := kind.path(namespace)
	if err != nil {
		return err
	}
	stream, err := c.request("GET").AbsPath(at...).Param("watch", "true").Param("fieldSelector", "metadata.name="+name).
		Param("resourceVersion", version).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	for decoder := json.NewDecoder(stream); ; {
		var event struct {
			Type   string         `json:"type"`
			Object map[string]any `json:"object"`
		}
		err := decoder.Decode(&event)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("watching %s %s: %w", kind.Kind, name, err)
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			report(Changed{&unstructured.Unstructured{Object: event.Object}})
		case "DELETED":
			report(Changed{})
		case "ERROR":
			return statusOf(event.Object)
		}
	}
}

// statusOf is the error that a stream ends with.
func statusOf(object map[string]any) error {
	var status metav1.Status
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	if err != nil {
		return err
	}
	return apierrors.FromObject(&status)
}
