"""Keep every limit in one place. docs/reference/limits.md explains each; a test compares the two."""

from __future__ import annotations

from typing import Final

# Values
REFERENCE_BYTES_MIN: Final = 256  # a repeated sub-value larger than this is written as a reference
INLINE_BYTES_MAX: Final = 32 * 1024  # a larger value spills to a blob
INTEGER_EXACT_MAX: Final = 2**53 - 1  # beyond it a JSON number is not exact everywhere: `$int`
DEPTH_MAX: Final = 100  # deeper values are cut off visibly, with `$repr`
PARTS_MAX: Final = 200_000  # written again because they are shared; the rest is cut off, with `$repr`, and counted
CYCLIC_PARTS_MAX: Final = 20_000  # the same for a value that contains itself
REPR_CHARACTERS_MAX: Final = 10_000  # of the repr of a value that cannot be restored; the rest is counted
FINGERPRINT_CONTAINERS_MAX: Final = 10_000  # that a digest of what is cut off looks at more than once
HELD_BYTES_MAX: Final = 64 * 1024 * 1024  # content one writer remembers in order to refer to it

# Names
NAME_CHARACTERS_MAX: Final = 200  # of runs, steps and tools; longer ones are kept in full in data, cut in views
ARTIFACT_NAME_BYTES_MAX: Final = 200
ARTIFACT_DEPTH_MAX: Final = 8

# Reading
READ_CHUNK_BYTES: Final = 1024 * 1024
LINE_BYTES_MAX: Final = 256 * 1024 * 1024  # a longer line is reported as damage instead of filling the memory
RESOLVED_LINES_CACHED_MAX: Final = 512
RESOLVED_CONTAINERS_MAX: Final = 20_000_000  # in one value; more is refused, since references may multiply without end

# Cassettes
CASSETTE_HEADER_BYTES_MAX: Final = 16 * 1024 * 1024
CASSETTE_MEMBER_BYTES_MAX: Final = 1024 * 1024 * 1024  # of one timeline or content, unpacked
CASSETTE_MEMBERS_MAX: Final = 60_000  # timelines and contents
CASSETTE_BYTES_MAX: Final = 4 * 1024 * 1024 * 1024  # of all of them, unpacked
CASSETTE_RATIO_MAX: Final = 200  # times as large as it is, a larger file may become
CASSETTE_RATIO_BYTES_MIN: Final = 64 * 1024 * 1024  # unpacked; up to this any ratio will do

# Traffic
CONVERSATIONS_MAX: Final = 1024  # in one run, that are followed at once; of more the oldest are no longer
BODY_BYTES_MAX: Final = 256 * 1024 * 1024  # of a longer one the beginning is kept, and that is counted
PROCESS_TIMEOUTS_MAX: Final = 10_000  # of one process whose times are kept; the others are counted
PROCESS_BYTES_MAX: Final = 64 * 1024 * 1024  # that pass through the pipes of one process; the rest is not kept
GIVEN_FILE_BYTES_MAX: Final = (
    4 * 1024 * 1024
)  # of a file that a process gets as its stdin; of a larger one its size is kept

# Reads
READS_MAX: Final = 1_000_000  # of clocks, and of all others, in one process of a run; the rest is named as a gap
READS_PACKED_MAX: Final = 4096  # of one lane, sealed as one event, where no other event comes before
READS_WAIT_S: Final = 1.0  # until what was read is written, where no other event of the lane comes before
WRITE_WAIT_S: Final = 1.0  # of a thread for another one that writes to the same output; then it writes beside it
FILE_BYTES_MAX: Final = 16 * 1024 * 1024  # of a file that is read; a larger one is named as a gap
FILES_BYTES_MAX: Final = 512 * 1024 * 1024  # of all files that one process of a run reads
FILES_KEPT_OPEN_MAX: Final = 64  # that a program has locked, or has as a database
FILES_KNOWN_MAX: Final = 100_000  # files and answers that are remembered, so that they are kept only once

# Policy
POLICY_BYTES_MAX: Final = 1024 * 1024  # of the file: it is asked with every step, and is written by people
POLICY_PATTERNS_KEPT_MAX: Final = 16_384  # in the form in which they are held against names
POLICY_COMMANDS_MAX: Final = 1000  # that are looked for inside one command; with more, it fits whatever forbids
POLICY_ALIASES_MAX: Final = 8  # of git that lead to one another
POLICY_GIT_CONFIG_BYTES_MAX: Final = 256 * 1024  # of a file in which aliases of git are looked for

# Effects
POLICY_FOLDER_MAX: Final = 10_000  # files in a folder that is renamed, each of which a policy is asked about
EFFECT_REPEATS_MAX: Final = 10  # of one effect in one span and lane; then the 100th, the 1000th, …
LOOKUPS_MAX: Final = 65_536  # addresses whose names are remembered: what comes later forgets the first ones

WRITTEN_FILES_MAX: Final = 1000  # that a run has written, of which it is kept at its end what they hold
WRITTEN_FILE_BYTES_MAX: Final = 4 * 1024 * 1024  # of one of them; of a larger one its size is kept
WRITTEN_BYTES_MAX: Final = 16 * 1024 * 1024  # of all of them

# Durability
SYNC_INTERVAL_S: Final = 0.05  # the background flush to disk comes at most this much later
LOCK_WAIT_S: Final = 10.0  # to get the run's file lock before the event is counted as lost
FORKED_LOCK_WAIT_S: Final = 0.02  # the same in a child that was forked in the middle of a write, and may be waited for
DESCRIPTOR_MIN: Final = 700  # numbers of the files that stay open: low ones are left to the program that is recorded
INDEX_GRACE_S: Final = 0.1  # in which a server answers from what it read for the question before
INDEX_WAIT_S: Final = 30.0  # for another process that updates the index

# What a run knows about its origin
GIT_TIMEOUT_S: Final = 5.0
GIT_DIFF_BYTES_MAX: Final = 64 * 1024 * 1024  # a larger working-tree diff is left out, and run.started says so
GIT_NEW_FILE_BYTES_MAX: Final = 1024 * 1024  # of a file that git does not know, in the diff; a larger one is named
GIT_UNTRACKED_BYTES_MAX: Final = 4 * 1024 * 1024  # of names in folders that git does not know, to see which are gone
GIT_COMMITS_MAX: Final = 1000
GIT_COMPLAINT_BYTES_MAX: Final = 8 * 1024  # of what git says on stderr; the first line becomes the problem

# Imports
IMPORT_FILE_BYTES_MAX: Final = 256 * 1024 * 1024  # of a file that is imported, which is held in memory
IMPORT_COMMITS_DEFAULT: Final = 1000  # the newest, of those that were asked for; `--limit` changes it
IMPORT_COMMITS_MAX: Final = 100_000
IMPORT_GIT_S: Final = 60.0  # in which git must have listed them
IMPORT_WAIT_S: Final = 60.0  # for another import into the same store
IMPORT_RUNS_MAX: Final = 20  # that one result of CI, or one commit, is attached to: the newest
JUNIT_TESTS_MAX: Final = 200_000  # in one file, and as many suites
JUNIT_DEPTH_MAX: Final = 50  # elements within elements
JUNIT_EVENTS_MAX: Final = 100  # tests that failed, of one file, which have an event of their own
ACTIONS_MEMBERS_MAX: Final = 20_000  # files in a zip of logs
ACTIONS_BYTES_MAX: Final = 512 * 1024 * 1024  # of all of them, unpacked
ACTIONS_LINES_MAX: Final = 5_000_000  # in all of them: a hundred bytes each
ACTIONS_MARKS_MAX: Final = 100  # errors, and as many groups, of one step that are listed; its log has all of them
LOG_ENTRIES_DEFAULT: Final = 50  # that `playhead log` prints

# The server
SERVE_PORT: Final = 4000
BODY_INFLATED_BYTES_MAX: Final = 16 * 1024 * 1024  # of one request, counted while it is inflated
BODIES_BYTES_MAX: Final = 64 * 1024 * 1024  # of all bodies that are being worked on; more is answered with 503
JSON_BODY_BYTES_MAX: Final = 4 * 1024 * 1024  # of a body of JSON that is no OTLP
JSON_BODY_DEPTH_MAX: Final = 64
HEAD_BYTES_MAX: Final = 64 * 1024  # of a request without its body
HEAD_WAIT_S: Final = 30.0  # for the head of a request to come, whole
BODY_WAIT_S: Final = 30.0  # in which nothing of a body comes, until its request is given up
REFERENCE_CHARACTERS_MAX: Final = 500  # of the name of a run, and of other parameters
SERVE_WRITERS: Final = 2  # processes that write runs, where there are several processors
SERVE_WRITERS_MAX: Final = 16
SERVE_LOCK_WAIT_S: Final = 2.0  # for the processes of a server that was killed to end
COLLECT_OBJECTS: Final = 50_000  # that a server makes before garbage is looked for: 700 is Python's default
READERS_MAX: Final = 8  # requests that are answered at the same time
WRITERS_MAX: Final = 2  # of these, that take something in
REQUESTS_WAITING_MAX: Final = 256  # for a thread; more are answered with 503
WRITES_WAITING_MAX: Final = 64
RATE_PER_S: Final = 500  # requests of one key; `serve --rate` changes it
RATE_BURST_S: Final = 4  # as many at once as so many seconds allow
RATE_KEYS_MAX: Final = 10_000  # that are counted at the same time
PAGE_MAX: Final = 1000  # runs, cassettes or jobs in one page
EVENTS_PAGE_DEFAULT: Final = 500
EVENTS_PAGE_MAX: Final = 5000
QUERY_S: Final = 10.0  # that a question in SQL may take
QUERY_ROWS_MAX: Final = 100_000  # rows of its answer
QUERY_BYTES_MAX: Final = 16 * 1024 * 1024  # of all of its values together
QUERY_PAGE_ROWS_MAX: Final = 20_000  # of one page of it, where it is asked for in pages
SQL_CHARACTERS_MAX: Final = 20_000
FOLLOW_INTERVAL_S: Final = 0.2  # between two looks for news
FOLLOW_ALIVE_S: Final = 15.0  # without news, after which a sign of life is sent
SHUTDOWN_S: Final = 30.0  # for what was accepted to be finished
CARE_INTERVAL_S: Final = 1.0  # between two looks at runs that may be over
CARE_PAUSE_S: Final = 0.1  # for what comes together to be read together
MINDER_PAUSE_S: Final = 0.2  # between two looks at what is new: what comes together is read together
SEARCH_QUIET_S: Final = 0.3  # in which nothing came in, after which the words of what came are looked at
SEARCH_LATE_S: Final = 5.0  # after which they are all the same, where more comes all the time
SEARCH_AT_ONCE_S: Final = 0.5  # that this takes before something else gets its turn
RUN_QUIET_S: Final = 10.0  # after its root ended, in which nothing more came: then a run is over
RUN_ABANDONED_S: Final = 900.0  # in which nothing came of a run whose root did not: then it is let go of
RUNS_OPEN_MAX: Final = 1000  # that spans may come to without opening them again
RECEIVED_BYTES_HELD_MAX: Final = 16 * 1024 * 1024  # content that is remembered of all of them, to refer to it
RUN_NAMES_KEPT_MAX: Final = 20_000  # traces and sessions whose run is known without looking
SERVE_SECONDS_MAX: Final = 86_400  # of `serve --quiet` and `--lease`
REMOTE_TIMEOUT_S: Final = 60.0  # for a server to say the next thing
REMOTE_TRIES_MAX: Final = 4  # of one question, where the connection is lost
REMOTE_PAUSE_S: Final = 0.2  # before the second of them; before each later one so much more
REMOTE_PATIENCE_S: Final = 30.0  # that a server may ask for, of one question, where it has too much to do
REMOTE_ERROR_BYTES_MAX: Final = 1024 * 1024  # of an answer that is a refusal
REMOTE_PAGE_BYTES: Final = 256 * 1024  # of a timeline that are read at first; then four times as many, and so on
REMOTE_PAGE_BYTES_MAX: Final = 8 * 1024 * 1024
REMOTE_LINES_BYTES_MAX: Final = 256 * 1024 * 1024  # of timelines that are kept, since most questions read them again
REMOTE_LINES_KEPT_S: Final = 30.0  # until what is read from its beginning again is asked for anew
REMOTE_TAIL_INTERVAL_S: Final = 0.5  # between two looks at a timeline that is followed on a server
HEALTH_PROBE_BYTES: Final = 64 * 1024  # written, and gone again, each time that somebody asks if all is well
JOB_POLL_S: Final = 0.25  # between two looks for a job
JOB_LEASE_S: Final = 30.0  # after which a job of a worker that says nothing is done by another

# Receiving
OTLP_SPANS_MAX: Final = 100_000  # spans, or log records, of one request; the rest is rejected, and that is counted
OTLP_ATTRIBUTES_MAX: Final = 10_000  # of one span, event, link, resource or scope; with more, the span is rejected
OTLP_EVENTS_MAX: Final = 10_000  # events, and as many links, of one span; with more, the span is rejected
OTLP_DEPTH_MAX: Final = 64  # lists and maps within each other in one value; a map with a `$` key counts three times
OTLP_JSON_DEPTH_MAX: Final = 30  # in the text of an attribute that is kept as a value; a deeper one stays text
OTLP_NAMES_KEPT_MAX: Final = 8192  # numbered names of attributes that are remembered with their parts
OTLP_PREPARED_MAX: Final = 512  # spans of a request that are made ready at once; of more each by itself
OTLP_NAMINGS_KEPT_MAX: Final = 512  # sets of names of attributes that are remembered with what they say
OTLP_NAMING_CHARACTERS_MAX: Final = 8192  # of one of these; of more it is found out each time
OTLP_EMITTERS_KEPT_MAX: Final = 128  # who sends spans, remembered as read: an exporter says the same in each request
OTLP_EMITTER_KEPT_BYTES_MAX: Final = 8192  # of one of these; what is longer is read each time
OTLP_PROBLEMS_MAX: Final = 20  # reasons for rejecting that an answer names; all that was rejected is counted
OTLP_REPR_CHARACTERS_MAX: Final = 20_000  # of a text that looks like a value of Python, and is read as one

# Redaction
SECRET_CHARACTERS_MIN: Final = 8  # a shorter value of a secret-looking variable is not searched for
LEARNED_VALUES_MAX: Final = 1000  # from requests and fields; where there are more, the older half is forgotten
CLEAN_CHARACTERS_MAX: Final = 4 * 1024 * 1024  # of texts that need not be searched again
HANDED_RULES_BYTES_MAX: Final = 16 * 1024  # of rules in the environment of a program; more are in a file
OPENED_BYTES_MAX: Final = 64 * 1024 * 1024  # of what is inside compressed data; a body with more is not kept

# Output
BACK_DIGITS_MAX: Final = 9  # of the number in `@last~N`
LIST_RUNS_MAX: Final = 2**31  # runs in one list
LIST_RUNS_DEFAULT: Final = 50
STATS_GROUPS_DEFAULT: Final = 50  # rows of `stats`; `--limit` changes it
CELL_CHARACTERS_MAX: Final = 120
SHOW_ROWS_DEFAULT: Final = 500  # rows of a timeline; `--limit` changes it
SHOW_VALUE_CHARACTERS_MAX: Final = (
    4000  # of a value that is shown beside others; `--json` and `--event` show it in full
)
LAST_WORDS_CHARACTERS_MAX: Final = 65_536  # of the end of stderr, in which the traceback of a program is looked for
DIFF_ROWS_DEFAULT: Final = 100  # deviations that `diff` shows; `--limit` changes it
AUDIT_ROWS_DEFAULT: Final = 20  # of the findings of one rule; `--limit` changes it
TAIL_EVENTS_DEFAULT: Final = 20
TAIL_INTERVAL_S: Final = 0.1  # between two looks at a timeline that is followed

# Reports
REPORT_EVENTS_MAX: Final = 20_000  # whose exact lines are in the page, of each run; `--events N` changes it
REPORT_CONTENTS_BYTES_MAX: Final = 8 * 1024 * 1024  # of what large values of these lines say, of each run
REPORT_ROWS_MAX: Final = 5000  # of a timeline in the page
REPORT_ROWS_SHORT: Final = 50  # of each part in Markdown
REPORT_FINDINGS_MAX: Final = 2000  # of an audit, in a table of the page
REPORT_LINE_CHARACTERS_MAX: Final = 20_000  # of a line that is shown; its data has all of it
REPORT_CONTEXT_CHARACTERS_MAX: Final = 400  # of what is the same between two words that differ
REPORT_CELL_CHARACTERS_MAX: Final = 160
REPORT_ERROR_CHARACTERS_MAX: Final = 480  # of why a run failed, with what lies behind that, in Markdown
REPORT_COMMENT_CHARACTERS_MAX: Final = 60_000  # of Markdown: GitHub takes a comment of 65,536

# Index
INDEX_BATCH_EVENTS: Final = 2000  # written in one transaction: progress is kept and memory stays flat
INDEX_ERROR_CHARACTERS_MAX: Final = 2000  # of an error in the index; the timeline has it in full
PRICED_MODELS_MAX: Final = 1000  # whose prices are kept in a store; those of others are looked up each time

# Programs started by `playhead record`
OUTPUT_READ_BYTES: Final = 64 * 1024  # of a program's output, at once
OUTPUT_PIECE_BYTES_MAX: Final = 16 * 1024  # recorded as one event: small enough to stay inside the line
OUTPUT_KEY_BYTES_MAX: Final = 64 * 1024  # of a private key in the output, held until its end so that it can be redacted
OUTPUT_LINE_WAIT_S: Final = 0.1  # for the rest of a line, such as a prompt, before its beginning is recorded
OUTPUT_QUIET_S: Final = 0.25  # after the program's end, of silence, until its output counts as ended
OUTPUT_LEFT_BYTES_MAX: Final = 1024 * 1024  # read after the program's end; a pipe holds no more than that
MARK_WAIT_S: Final = 2.0  # for the launcher to say how much of the output it has, once a process starts or ends
MARK_BYTES_MAX: Final = 1024  # of that answer
PRINTED_PARTS_MAX: Final = 10_000  # that one process wrote to an output of the program between what that wrote itself
SIGNAL_WAIT_S: Final = 1.0  # for a program to act on a signal to its group before the signal is passed on
PROGRAM_END_WAIT_S: Final = 5.0  # for a program that was told to end, before it is killed

# The server
REGISTRY_WAIT_S: Final = 30.0  # for another process that writes what the server keeps
KEY_USED_EVERY_S: Final = 60.0  # the last use of a key is kept no more exactly than that
KEY_NAME_CHARACTERS_MAX: Final = 200
BROWSER_SESSION_S: Final = 12 * 3600.0  # until a browser has to show its key again
CASSETTE_PART_BYTES: Final = 1024 * 1024  # of a cassette in the database, held in memory at once
CASSETTE_STORED_BYTES_MAX: Final = 1024 * 1024 * 1024  # of a cassette in the database: it is written in one step
JOB_ATTEMPTS_MAX: Final = 3  # of a job whose worker dies, until it counts as failed
JOB_SECONDS_MAX: Final = 3600.0  # from its first start, until a job is failed
JOB_JSON_BYTES_MAX: Final = 1024 * 1024  # of what a job is asked, and of what it answers
JOB_DIFF_BYTES_MAX: Final = 512 * 1024  # of the deviations in the answer of a job; GET /api/diff tells all
PAGE_ROWS_DEFAULT: Final = 50  # cassettes or jobs in one list
PAGE_ROWS_MAX: Final = 1000

# Search
SEARCH_BATCH_EVENTS: Final = 2000  # written in one transaction
SEARCH_EVENT_CHARACTERS: Final = 4096  # of an event; one with more counts as several in a batch
SEARCH_BLOB_BYTES_MAX: Final = 1024 * 1024  # of a large value, whose words are found; those behind are not
SEARCH_LINE_CHARACTERS_MAX: Final = 4 * 1024 * 1024  # of all texts of one event, whose words are found
SEARCH_STRETCHES_MAX: Final = 10_000  # of numbers of runs, that are known to be taken
SEARCH_EVENTS_MAX: Final = 2**23  # of one run, whose words are found
SEARCH_WORDS_MAX: Final = 32  # words and phrases in one question
SEARCH_QUERY_CHARACTERS_MAX: Final = 4096  # of the question
SEARCH_CATCH_UP_S: Final = 2.0  # that a server reads what is new before it answers; the rest is found later
SEARCH_HITS_DEFAULT: Final = 50
SNIPPET_CHARACTERS_MAX: Final = 160

# Pruning
BLOB_AGE_S_MIN: Final = 24 * 3600  # a younger blob may belong to a line that is still to be written

# Doctor
DISK_FREE_BYTES_FAIL: Final = 10 * 1024 * 1024
DISK_FREE_BYTES_WARN: Final = 1024 * 1024 * 1024
DOCTOR_RECENT_S: Final = 7 * 24 * 3600  # how far back it looks for crashed runs and lost events

# Replay
MODELS_AT_ONCE: Final = 8  # questions to live models of a replay that are under way at once
TIMES_MAX: Final = 1000  # that a program is run again with its models live, by one command
BISECT_REPLAYS_MAX: Final = 1000  # that one bisection makes
WRITTEN_AFTER_END_US: Final = 1_000_000  # after its last event in which a program that was cut off may have written
MODEL_ANSWER_S: Final = 600.0  # in which nothing comes from a live model, until it is given up
DEVIATIONS_KEPT_MAX: Final = 1000  # differences of one replay that are kept in full; all are counted
WRITTEN_LATER_MAX: Final = 128  # halves of calls that a replay has answered and not yet written
STALLS_KEPT_MAX: Final = 100  # places where a replay let somebody go on out of its turn, since nobody else could
DEVIATIONS_RAISED_MAX: Final = 1000  # in a program that catches each and asks again, until its replay is ended
STUCK_S: Final = 5.0  # in which nothing moves in a program that has deviated, until its replay is ended
IN_VAIN_S: Final = 10.0  # in which nothing moves, until whoever waits for what had come in time is told that it has not
SLOWER_MAX: Final = 10  # times as long as that, or as its timeout, while somebody works: a machine may be slow
BUSY_S_MAX: Final = 2.0  # of work of a replayed program, after which whoever waits for his turn goes on beside it
BLOCKED_KEPT_MAX: Final = 1000  # attempts to touch the world that are listed in the report of a replay
PLACES_KEPT_MAX: Final = 20_000  # events, and lines of output, of a replay whose line in the program is remembered
DIFFERENCE_EDITS_MAX: Final = 300  # between two lists or texts; with more, what lies between their ends is replaced
DIFFERENCE_WORDS_MAX: Final = 20_000  # or lines, in a text that is compared by them; of a longer one only the ends are
DIFFERENCE_CHANGES_MAX: Final = 50  # in one question; a container with more is one change
DIFFERENCE_ARTIFACT_BYTES_MAX: Final = 1024 * 1024  # of an artifact whose text is compared; of a larger one the digest
DIFFERENCE_ALIKE_MAX: Final = (
    2_500  # spans of one name times those of the other run, each held against each by what is in them
)
DIFFERENCE_ALIKE_NODES_MAX: Final = 256  # of what is in such a span, that is looked at
DIFFERENCE_KIN_MAX: Final = (
    2_000  # calls in one comparison whose single values are held against each other; the rest is paired by its place
)
DIFFERENCE_WRAPPERS_MAX: Final = 16  # spans put around each other, that are seen as put around what is in them
DIFFERENCE_CHILDREN_MAX: Final = 100  # runs of Pythons that the two started, which are compared in their turn
DURATION_DIFF_RATIO_MIN: Final = 0.25  # of the longer of two times, from which on `diff --durations` names them
DURATION_DIFF_US_MIN: Final = 10_000  # and so many microseconds apart: less is noise
NEAREST_COMPARED_MAX: Final = 64  # recorded questions that are compared with one that is not on the tape
NEAREST_CHARACTERS_MAX: Final = 16 * 1024  # of each, half from its beginning and half from its end
DEVIATION_LINES_MAX: Final = 60  # of the message of a deviation; `--json` has all of it
DEVIATION_WIDTH_MAX: Final = 120
NORMALISER_MATCH_CHARACTERS_MAX: Final = 2048  # that one match of a normaliser's regular expression can be long
NORMALISER_REPEATS_MAX: Final = 3  # without an end (`*`, `+`), in the regular expression of a normaliser
CASSETTE_NAME_CHARACTERS_MAX: Final = 120  # of a cassette's file name made of a test's; a longer one gets a digest
TEST_JOBS_MAX: Final = 64  # replays that `playhead test` runs at once
