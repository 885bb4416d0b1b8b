package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// deployment is the version of this worker, as Temporal gets it. Every workflow moves to the current version: a maintenance runs for hours
// and the scheduler for ever, and neither may keep an old build running.
func deployment(o Options) sdkworker.DeploymentOptions {
	v := o.Config.Versioning
	if v.Deployment == "" {
		return sdkworker.DeploymentOptions{}
	}
	return sdkworker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   version(o),
		DefaultVersioningBehavior: workflow.VersioningBehaviorAutoUpgrade,
	}
}

func version(o Options) sdkworker.WorkerDeploymentVersion {
	v := o.Config.Versioning
	return sdkworker.WorkerDeploymentVersion{DeploymentName: v.Deployment, BuildID: cmp.Or(v.BuildID, o.Version)}
}

// describePause is the time between reads of the deployment while the server does not know it yet.
const describePause = 2 * time.Second

// warnIfNotCurrent logs how to give work to a version that gets none. Which version is current is the operator's decision, since the first
// one takes the tasks of workers that are not versioned.
func warnIfNotCurrent(ctx context.Context, o Options, temporal client.Client) {
	if o.Config.Versioning.Deployment == "" {
		return
	}
	own := version(o)
	for {
		described, err := temporal.WorkerDeploymentClient().GetHandle(own.DeploymentName).Describe(ctx, client.WorkerDeploymentDescribeOptions{})
		var unknown *serviceerror.NotFound
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if current := described.Info.RoutingConfig.CurrentVersion; current == nil || *current != own {
				o.Logger.Warn("this version of the worker gets no work until it is made current", "deployment", own.DeploymentName,
					"buildID", own.BuildID, "command", fmt.Sprintf(
						"temporal worker deployment set-current-version --deployment-name %s --build-id %s", own.DeploymentName, own.BuildID))
			}
			return
		case !errors.As(err, &unknown):
			o.Logger.Warn("the worker deployment could not be looked at", "deployment", own.DeploymentName, "error", err)
		}
		select {
		case <-time.After(describePause):
		case <-ctx.Done():
			return
		}
	}
}
