package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// push pushes images, each with all its architectures under one name. Credentials are those of `docker login`.
func (o options) push(ctx context.Context, registry string, names []string, out io.Writer) error {
	if len(names) == 0 {
		return errors.New(usage)
	}
	var digests strings.Builder
	for _, of := range names {
		tag, err := name.NewTag(registry + "/" + of + ":" + o.tag())
		if err != nil {
			return fmt.Errorf("REGISTRY: %w", err)
		}
		index, err := o.index(of)
		if err != nil {
			return fmt.Errorf("image %s: %w", of, err)
		}
		if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("pushing %s: %w", tag, err)
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		fmt.Fprintf(&digests, "%s %s\n", tag.Context(), digest)
	}
	fmt.Fprint(out, digests.String())
	if o.digests == "" {
		return nil
	}
	return os.WriteFile(o.digests, []byte(digests.String()), 0o644)
}

// index has an image of each architecture that was built.
func (o options) index(of string) (v1.ImageIndex, error) {
	files, err := filepath.Glob(filepath.Join(o.from, o.file(of, "*")))
	if err != nil {
		return nil, err
	}
	index, found := mutate.IndexMediaType(empty.Index, types.DockerManifestList), false
	for _, file := range files { // in the order of their names
		image, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if config.Config.Labels[versionLabel] != o.version {
			continue // v1.0.0-rc1 is no architecture of v1.0.0
		}
		found = true
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: config.OS, Architecture: config.Architecture}},
		})
	}
	if !found {
		return nil, fmt.Errorf("%s has none of %s: make images builds it", o.from, o.version)
	}
	return index, nil
}
