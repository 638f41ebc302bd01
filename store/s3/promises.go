package s3

import (
	"strings"

	"github.com/slotlease/slotlease/store"
)

// durability is what Amazon promises of S3; of a service with an endpoint of its own nothing is known.
func (l *Ledger) durability() store.Durability {
	if l.address.endpoint != nil {
		const asSet = "As the service at the endpoint is set up: it must acknowledge no record before it is safe."
		return store.Durability{
			Crash: asSet, Power: asSet,
			Failover: "None may take over a bucket that is copied with delay: the newest records would be missing, leases among them.",
		}
	}
	return store.Durability{
		Crash:    "All: S3 acknowledges a record when several machines of the region have it.",
		Power:    "All: S3 acknowledges a record when at least three availability zones have it, or one for the classes of a single zone.",
		Failover: "Of a replica in another region nothing is sure: replication is asynchronous, so that the newest records are missing, leases among them.",
	}
}

// script is what Init does as commands for aws, and the rights of a worker.
func (l *Ledger) script() string {
	options, created := "", ""
	if u := l.address.endpoint; u != nil {
		options = " --endpoint-url " + u.Scheme + "://" + u.Host
	} else if region := l.api.Options().Region; region != defaultRegion {
		options, created = " --region "+region, " --create-bucket-configuration LocationConstraint="+region
	}
	return strings.NewReplacer("BUCKET", l.address.bucket, "FOLDER", l.address.folder, "OPTIONS", options, "CREATED", created).Replace(`# for a shell with aws
aws s3api create-bucket --bucket BUCKETOPTIONSCREATED
# A worker needs these rights, and without s3:DeleteObject everything works but trimming and leaving the roster.
aws iam put-role-policy --role-name WORKER --policy-name ledger --policy-document '{"Version": "2012-10-17", "Statement": [
  {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:GetLifecycleConfiguration", "s3:GetBucketVersioning"], "Resource": "arn:aws:s3:::BUCKET"},
  {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "Resource": "arn:aws:s3:::BUCKET/FOLDER*"}]}'
`)
}
