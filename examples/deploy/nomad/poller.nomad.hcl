# One command on two machines, of which one runs it; the other takes over within 20 s:
#
#	nomad var put nomad/jobs/poller uri='postgres://worker:password@db.example/jobs'
#	nomad job run poller.nomad.hcl
#
# leasectl and the command are installed on the clients, as by the package, or fetched by an artifact block.
job "poller" {
  type = "service"

  group "poller" {
    count = 2

    constraint {
      operator = "distinct_hosts"
      value    = "true"
    }

    network {
      port "leasectl" {}
    }

    service {
      name     = "poller"
      port     = "leasectl"
      provider = "nomad"

      check {
        type     = "http"
        path     = "/healthz"
        interval = "10s"
        timeout  = "1s"

        check_restart {
          limit = 3
          grace = "60s"
        }
      }
    }

    task "poller" {
      driver       = "exec"
      kill_timeout = "30s"

      config {
        command = "/usr/bin/leasectl"
        args = [
          "run", "--worker-type", "poller", "--every", "1m", "--continuous", "--failover-within", "20s",
          "--instance-id", "${node.unique.name}", "--listen", "0.0.0.0:${NOMAD_PORT_leasectl}",
          "--store-file", "${NOMAD_SECRETS_DIR}/store", "--", "/usr/local/bin/poller",
        ]
      }

      template {
        destination = "secrets/store"
        perms       = "0400"
        data        = <<-EOT
          {{ with nomadVar "nomad/jobs/poller" }}{{ .uri }}{{ end }}
        EOT
      }

      resources {
        cpu    = 100
        memory = 128
      }
    }
  }
}
