package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// project is one start of the compose files, under a name and on ports that nobody else has.
type project struct {
	name string
	// command is docker compose, or docker-compose where that is what there is.
	command []string
	env     []string
}

func newProject(ctx context.Context) (*project, error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return nil, notRun{"there is no docker command here"}
	}
	if _, err := output(exec.CommandContext(ctx, "docker", "info", "--format", "{{.ServerVersion}}")); err != nil {
		return nil, notRun{"no Docker engine answers here (docker info says why)"}
	}
	p := &project{name: fmt.Sprintf("drydock-trial-%d", os.Getpid())}
	for _, command := range [][]string{{"docker", "compose"}, {"docker-compose"}} {
		if exec.CommandContext(ctx, command[0], append(command[1:], "version")...).Run() == nil {
			p.command = command
			break
		}
	}
	if p.command == nil {
		return nil, notRun{"there is neither docker compose nor docker-compose here"}
	}
	local := filepath.Join("deploy", "compose", "local")
	p.command = append(p.command, "--project-name", p.name, "--env-file", local+".env", "-f", "docker-compose.yaml", "-f", local+".yaml")
	// These would be another cluster's, and other images.
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if name != "KUBECONFIG" && !strings.HasPrefix(name, "DRYDOCK_") && !strings.HasPrefix(name, "TEMPORAL_") && !strings.HasPrefix(name, "COMPOSE_") {
			p.env = append(p.env, pair)
		}
	}
	return p, p.choosePorts(ctx)
}

// choosePorts finds a free port for everything that listens. All are held until the last is found, so that none is found twice.
func (p *project) choosePorts(ctx context.Context) error {
	for _, name := range []string{"TEMPORAL_PORT", "TEMPORAL_UI_PORT", "DRYDOCK_PORT", "DRYDOCK_ADMIN_PORT", "KUBERNETES_PORT"} {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("looking for a free port: %w", err)
		}
		defer l.Close()
		p.env = append(p.env, name+"="+strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return nil
}

func (p *project) prepare(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.command[0], append(p.command[1:len(p.command):len(p.command)], args...)...)
	cmd.Env = p.env
	return cmd
}

func (p *project) compose(ctx context.Context, args ...string) (string, error) {
	return output(p.prepare(ctx, args...))
}

// drydock runs the command line in its image.
func (p *project) drydock(ctx context.Context, args ...string) (string, error) {
	return p.compose(ctx, append([]string{"run", "--rm", "-T", "cli"}, args...)...)
}

func (p *project) kubectl(ctx context.Context, args ...string) (string, error) {
	return p.kubectlWith(ctx, "", args...)
}

func (p *project) kubectlWith(ctx context.Context, input string, args ...string) (string, error) {
	cmd := p.prepare(ctx, append([]string{"exec", "-T", "kubernetes", "devcluster", "kubectl"}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	return output(cmd)
}

// kubectlSays compares what kubectl prints.
func (p *project) kubectlSays(ctx context.Context, want string, args ...string) error {
	got, err := p.kubectl(ctx, args...)
	if err == nil && got != want {
		err = fmt.Errorf("kubectl %s: %q: want %q", strings.Join(args, " "), got, want)
	}
	return err
}

// cordoned reports whether the node is out of service.
func (p *project) cordoned(ctx context.Context, want bool) error {
	text := ""
	if want {
		text = "true"
	}
	return p.kubectlSays(ctx, text, "get", "node", node, "-o", "jsonpath={.spec.unschedulable}")
}

// inspect compares what the engine says of a service's container.
func (p *project) inspect(ctx context.Context, service, format, want string) error {
	id, err := p.compose(ctx, "ps", "-a", "-q", service)
	if err != nil {
		return err
	}
	got, err := output(exec.CommandContext(ctx, "docker", "inspect", "--format", format, strings.TrimSpace(id)))
	if err == nil && strings.TrimSpace(got) != want {
		err = fmt.Errorf("%s of %s is %q: want %q", format, service, strings.TrimSpace(got), want)
	}
	return err
}

func (p *project) showLogs(ctx context.Context) {
	logs, err := p.compose(ctx, "logs", "--no-color", "--tail", "60")
	if err != nil {
		logs = err.Error()
	}
	fmt.Fprintln(os.Stderr, logs)
}

func (p *project) remove(ctx context.Context) error {
	_, err := p.compose(ctx, "down", "--volumes", "--remove-orphans", "--timeout", "10")
	return err
}
