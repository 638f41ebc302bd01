package jobfile

import "testing"

func TestJobsHaveTheOptionsOfRunByItsNames(t *testing.T) {
	wantJobs(t, "jobs.yaml", `# yaml-language-server: $schema=jobs.schema.json
defaults:
  zone: Europe/Berlin
  startWithin: 10m
  env: {LANG: C, DEBUG: yes}
  labels: {region: eu}
  noFailback: true
jobs:
- name: report
  schedule: ["0 2 * * *", "@monthly"]
  command: [./report, --all, 1]
  env: {DEBUG: 0}
  labels: {disk: ssd}
  timeout: 2h
  catchUp: newest
  maxAttempts: 3
  priority: 1
  user: www-data
  dir: /srv/reports
- name: sweep
  every: 5m
  from: 00:02
  startWithin: # none
  command: |
    rm -f /tmp/x
    echo done
- name: poller
  every: 1m
  continuous: true
  onExit: restart
  command: ./poller
`,
		`jobs.yaml:9:3 report --cron=0 2 * * * --cron=@monthly --zone=Europe/Berlin --once-per-slot=true --start-within=10m --run-timeout=2h --catch-up=newest --max-attempts=3 --priority=1 --label=region=eu --label=disk=ssd ["./report" "--all" "1"] user="www-data" dir="/srv/reports" env="LANG=C,DEBUG=0"`,
		`jobs.yaml:20:3 sweep --every=5m --from=00:02 --once-per-slot=true --label=region=eu ["/bin/sh" "-c" "rm -f /tmp/x\necho done\n"] env="LANG=C,DEBUG=yes"`,
		`jobs.yaml:27:3 poller --every=1m --continuous=true --no-failback=true --on-exit=restart --label=region=eu ["/bin/sh" "-c" "./poller"] env="LANG=C,DEBUG=yes"`,
	)
}

func TestAJobsOwnScheduleTakesThePlaceOfTheDefault(t *testing.T) {
	wantJobs(t, "jobs.yaml", `
defaults: {every: 1h, from: 00:10, onExit: keep}
jobs:
- {name: a, command: x}
- {name: b, command: x, schedule: "@daily", oncePerSlot: false}
`,
		`jobs.yaml:4:3 a --every=1h --from=00:10 --once-per-slot=true ["/bin/sh" "-c" "x"]`,
		`jobs.yaml:5:3 b --cron=@daily --on-exit=keep ["/bin/sh" "-c" "x"]`,
	)
}

func TestWhatIsWrongInJobsHasItsPlace(t *testing.T) {
	wantFaults(t, "jobs.yaml", `defaults:
  comand: x
  name: x
  priority: [1]
job: 1
jobs:
- {name: -a, command: x}
- {name: b, command: [], start-within: 5m, continuous: yes}
- {name: c, command: [x, [y]], env: [A], labels: {a: [b]}}
- name: d
  shedule: "@daily"
  env: {"": x, B=C: x, D: }
- e
- {command: " ", every: {a: b}}
`,
		`jobs.yaml:2:3: unknown key "comand" of defaults: docs/jobs.schema.json has all keys`,
		`jobs.yaml:3:3: unknown key "name" of defaults: each job has its own`,
		`jobs.yaml:4:13: priority: must be a text, not a list`,
		`jobs.yaml:5:1: unknown key "job" of the file: did you mean jobs?`,
		`jobs.yaml:7:10: name "-a": character '-' at position 1: use 1 to 63 of A-Z a-z 0-9 . _ - and begin with a letter or digit`,
		`jobs.yaml:8:22: command: is empty: write a list of a program and its arguments, or a line for a shell`,
		`jobs.yaml:8:26: unknown key "start-within" of a job: did you mean startWithin?`,
		`jobs.yaml:8:56: continuous: must be true or false`,
		`jobs.yaml:9:26: command: must be a text, not a list`,
		`jobs.yaml:9:37: env: must be a map, not a list`,
		`jobs.yaml:9:54: labels: a: must be a text, not a list`,
		`jobs.yaml:10:3: a job without a command: give it one`,
		`jobs.yaml:11:3: unknown key "shedule" of a job: did you mean schedule?`,
		`jobs.yaml:12:9: env: "" is no name of a variable: it must not be empty, and have no =`,
		`jobs.yaml:12:16: env: "B=C" is no name of a variable: it must not be empty, and have no =`,
		`jobs.yaml:12:27: env: D: must be a text, not empty`,
		`jobs.yaml:13:3: a job: must be a map of name, schedule …, not a text`,
		`jobs.yaml:14:3: a job without a name: give it one`,
		`jobs.yaml:14:13: command: is empty: write a list of a program and its arguments, or a line for a shell`,
		`jobs.yaml:14:25: every: must be a text, not a map`,
	)
}

func TestAFileThatIsNoYAMLHasItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"jobs:\n- {name: a\n":                            "jobs.yaml:2: did not find expected ',' or '}'",
		"jobs: []\n---\njobs: []\n":                      "jobs.yaml:2:1: a second document: a file has one",
		"---\n":                                          `jobs.yaml:2:1: the file: must be a map of defaults, jobs …, not empty`,
		"defaults: {}\n":                                 `jobs.yaml:1:1: no jobs: write "jobs:", and a list of them`,
		"jobs: {a: {}}\n":                                `jobs.yaml:1:7: jobs: must be a list, each item of which begins with "- name: …", not a map`,
		"jobs: &a\n- *a\n":                               "jobs.yaml:1:7: anchors and aliases may not be used: write what jobs share under defaults",
		"jobs:\n- {name: !!binary aGk=}\n":               `jobs.yaml:2:10: tags such as "!!binary" may not be used: leave it out`,
		"jobs:\n- {name: a, ? [b] : c}\n":                "jobs.yaml:2:15: a key must be a text, not a list",
		"jobs:\n- name: a\n  command: x\n  command: y\n": `jobs.yaml:4:3: "command" is there already, in line 3: leave one of them out`,
		"jobs:\n- {name: a, command: \"x\\0\"}\n":        "jobs.yaml:2:22: the text has a zero byte, which no command can get",
	} {
		wantFaults(t, "jobs.yaml", text, want)
	}
}
