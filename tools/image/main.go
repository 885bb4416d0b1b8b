// Command image makes Drydock's container images FROM scratch, without a container engine, as files that `docker load` takes, and pushes
// them to a registry. The same programs of the same commit give the same image, to the bit: all times in it are the commit's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const usage = `usage:
  image build -from FOLDER -to FOLDER -version VERSION -created TIME NAME...
    makes images of the programs in FOLDER/ARCHITECTURE, each as the file NAME-VERSION-ARCHITECTURE.tar
  image push -from FOLDER -version VERSION [-digests FILE] REGISTRY NAME...
    pushes the images of all architectures that are there, each as one name
`

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options are those of both commands.
type options struct {
	from, to                  string
	version, revision, source string
	architecture, created     string
	digests                   string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	var o options
	flags := flag.NewFlagSet("image "+args[0], flag.ContinueOnError)
	flags.StringVar(&o.from, "from", "", "the `FOLDER` of the programs, or of the images")
	flags.StringVar(&o.version, "version", "", "the `VERSION`, which is also the tag")
	switch args[0] {
	case "build":
		flags.StringVar(&o.to, "to", "", "the `FOLDER` for the images")
		flags.StringVar(&o.architecture, "arch", "amd64", "the `ARCHITECTURE` of the programs")
		flags.StringVar(&o.created, "created", "", "when the commit was made, in RFC 3339")
		flags.StringVar(&o.revision, "revision", "unknown", "the commit")
		flags.StringVar(&o.source, "source", "unknown", "where the source is")
	case "push":
		flags.StringVar(&o.digests, "digests", "", "a `FILE` to which the digests are written, an image a line")
	default:
		return errors.New(usage)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if o.from == "" || o.version == "" || flags.NArg() == 0 {
		return errors.New(usage)
	}
	if args[0] == "build" {
		return o.build(flags.Args(), out)
	}
	return o.push(ctx, flags.Arg(0), flags.Args()[1:], out)
}

// build makes images.
func (o options) build(names []string, out io.Writer) error {
	created, err := time.Parse(time.RFC3339, o.created)
	if err != nil {
		return fmt.Errorf("-created: %w", err)
	}
	for _, name := range names {
		r, known := recipes[name]
		if !known {
			return fmt.Errorf("there is no image %s", name)
		}
		if err := r.write(name, o, created.UTC(), out); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}

var notInTags = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// tag is the version as a tag, which may not have all the characters that a version may.
func (o options) tag() string { return notInTags.ReplaceAllString(o.version, "-") }

// file is the name of an image's file.
func (o options) file(name, architecture string) string {
	return strings.Join([]string{name, o.tag(), architecture}, "-") + ".tar"
}
