package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// recipe is what is in an image, and how it is run.
type recipe struct {
	description string
	// programs go into /usr/local/bin, with their SBOMs and the licence where shipped.
	programs []string
	shipped  bool
	// trees are folders whose content is put at the root.
	trees               []string
	environment         []string
	entrypoint, command []string
}

// Programs are static, bring their own root certificates and time zones, and write nowhere: the root file system may be read-only.
var recipes = map[string]recipe{
	// One image is what a cluster pulls, pins and scans: the bridge is another command of it.
	"drydock": {
		description: "Drydock's worker and bridge", programs: []string{"drydock-worker", "drydock-bridge"}, shipped: true,
		command: []string{"drydock-worker"},
	},
	"drydock-cli": {
		description: "Drydock's command line", programs: []string{"drydock"}, shipped: true,
		entrypoint: []string{"drydock"},
	},
	// The images to try Drydock with. Folders have /tmp, the one that anybody may write into.
	"drydock-temporal": {
		description: "Temporal's development server with its UI", programs: []string{"devtemporal"}, trees: []string{"folders"},
		// There is no /etc/passwd to look a user up in.
		environment: []string{"HOME=/tmp", "USER=temporal"}, entrypoint: []string{"devtemporal"},
	},
	// Libraries are the C library that devcluster is linked with, if it is.
	"drydock-cluster": {
		description: "A Kubernetes control plane with nodes that are played", programs: []string{"devcluster"}, trees: []string{"libraries", "folders"},
		environment: []string{"HOME=/tmp"}, entrypoint: []string{"devcluster"},
	},
}

const versionLabel = "org.opencontainers.image.version"

// user is who the programs run as.
const user = "65532:65532"

// write makes the image, and writes it to its file.
func (r recipe) write(of string, o options, created time.Time, out io.Writer) error {
	files, err := r.files(filepath.Join(o.from, o.architecture))
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if err := pack(&content, files, created); err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		return err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "tools/image"}})
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", o.architecture, v1.Time{Time: created}
	config.Config = v1.Config{
		User: user, Entrypoint: r.entrypoint, Cmd: r.command, Env: append([]string{"PATH=/usr/local/bin"}, r.environment...),
		Labels: map[string]string{
			"org.opencontainers.image.title": of, "org.opencontainers.image.description": r.description,
			versionLabel: o.version, "org.opencontainers.image.revision": o.revision, "org.opencontainers.image.source": o.source,
			"org.opencontainers.image.created": created.Format(time.RFC3339), "org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	tag, err := name.NewTag(of + ":" + o.tag() + "-" + o.architecture)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.to, 0o755); err != nil {
		return err
	}
	if err := tarball.WriteToFile(filepath.Join(o.to, o.file(of, o.architecture)), tag, image); err != nil {
		return err
	}
	id, err := image.ConfigName()
	fmt.Fprintf(out, "   %s:%s-%s, %.1f MB, %s\n", of, o.tag(), o.architecture, float64(content.Len())/1e6, id)
	return err
}

// file is a file of an image, and where it comes from; a folder comes from nowhere.
type file struct {
	to, from string
	mode     fs.FileMode
}

// files are those of an image, in the order of their names, with the folders that they are in.
func (r recipe) files(from string) (all []file, err error) {
	for _, program := range r.programs {
		all = append(all, file{path.Join("usr/local/bin", program), filepath.Join(from, program), 0o755})
		if r.shipped {
			all = append(all, file{path.Join("usr/share/doc/drydock", program+".spdx.json"), filepath.Join(from, program+".spdx.json"), 0o644})
		}
	}
	if r.shipped {
		all = append(all, file{"usr/share/doc/drydock/LICENSE", filepath.Join(from, "LICENSE"), 0o644})
	}
	for _, tree := range r.trees {
		root := filepath.Join(from, tree)
		err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
			if err != nil || at == root {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			to, err := filepath.Rel(root, at)
			one := file{to: filepath.ToSlash(to), from: at, mode: info.Mode()}
			if d.IsDir() {
				one.from = ""
			}
			all = append(all, one)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, f := range slices.Clone(all) {
		for folder := path.Dir(f.to); folder != "."; folder = path.Dir(folder) {
			all = append(all, file{to: folder, mode: 0o755})
		}
	}
	slices.SortStableFunc(all, func(a, b file) int { return bytes.Compare([]byte(a.to), []byte(b.to)) })
	return slices.CompactFunc(all, func(a, b file) bool { return a.to == b.to }), nil // the first: a folder of a tree keeps its mode
}

// pack writes files as a tar archive that belongs to root and has one time.
func pack(to io.Writer, files []file, at time.Time) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		if err := packOne(w, f, at); err != nil {
			return fmt.Errorf("%s: %w", f.to, err)
		}
	}
	return w.Close()
}

func packOne(w *tar.Writer, f file, at time.Time) error {
	header := &tar.Header{Name: f.to, Mode: int64(f.mode.Perm()), ModTime: at.Truncate(time.Second), Format: tar.FormatUSTAR}
	if f.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	if f.from == "" {
		header.Name, header.Typeflag = f.to+"/", tar.TypeDir
		return w.WriteHeader(header)
	}
	content, err := os.ReadFile(f.from)
	if err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, int64(len(content))
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = w.Write(content)
	return err
}
