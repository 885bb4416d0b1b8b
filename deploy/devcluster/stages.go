package main

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

//go:embed stages/*.yaml
var stageFiles embed.FS

// kwokObject is one document of kwok's configuration, as written.
type kwokObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	text              []byte
}

// kwokConfiguration is our stages plus those of the extra file, if one is
// named. kwok itself would play two stages of one name by turns; here the extra
// one takes the place of ours.
func kwokConfiguration(extraFile string) ([]byte, error) {
	objects, err := builtinStages()
	if err != nil {
		return nil, err
	}
	if extraFile != "" {
		content, err := os.ReadFile(extraFile)
		if err != nil {
			return nil, fmt.Errorf("read the kwok stages: %w", err)
		}
		extra, err := splitObjects(content)
		if err != nil {
			return nil, fmt.Errorf("kwok stages in %s: %w", extraFile, err)
		}
		objects = replaceObjects(objects, extra)
	}
	texts := make([][]byte, len(objects))
	for i, object := range objects {
		texts[i] = object.text
	}
	return bytes.Join(texts, []byte("\n---\n")), nil
}

func builtinStages() ([]kwokObject, error) {
	const dir = "stages"
	entries, err := stageFiles.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("built-in kwok stages: %w", err)
	}
	var all []kwokObject
	for _, entry := range entries {
		content, err := stageFiles.ReadFile(path.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("built-in kwok stages: %w", err)
		}
		objects, err := splitObjects(content)
		if err != nil {
			return nil, fmt.Errorf("built-in kwok stages in %s: %w", entry.Name(), err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// splitObjects parses just enough of a YAML file to tell its documents apart.
func splitObjects(content []byte) ([]kwokObject, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var objects []kwokObject
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("split the documents: %w", err)
		}
		object := kwokObject{text: bytes.TrimSpace(text)}
		if err := yaml.Unmarshal(object.text, &object); err != nil {
			return nil, fmt.Errorf("parse document %d: %w", len(objects)+1, err)
		}
		if object.Kind == "" && object.Name == "" {
			continue // a comment or an empty document
		}
		if object.Kind == "" || object.Name == "" {
			return nil, fmt.Errorf("document %d has no kind or no metadata.name", len(objects)+1)
		}
		objects = append(objects, object)
	}
}

// replaceObjects puts each extra object where one of the same kind and name
// stood, or else at the end.
func replaceObjects(objects, extra []kwokObject) []kwokObject {
	place := map[[2]string]int{}
	for i, object := range objects {
		place[[2]string{object.Kind, object.Name}] = i
	}
	for _, object := range extra {
		if i, ok := place[[2]string{object.Kind, object.Name}]; ok {
			objects[i] = object
		} else {
			objects = append(objects, object)
		}
	}
	return objects
}
