"""Contains all the data models used in inputs/outputs"""

from .answer_name import AnswerName
from .answer_wish import AnswerWish
from .applied_changes import AppliedChanges
from .apply_wish import ApplyWish
from .asked_type_0 import AskedType0
from .asked_type_1 import AskedType1
from .asked_type_2 import AskedType2
from .asked_type_3 import AskedType3
from .asked_type_4 import AskedType4
from .asked_type_5 import AskedType5
from .audit_list import AuditList
from .audit_report import AuditReport
from .basis import Basis
from .case_wish import CaseWish
from .change_list import ChangeList
from .check_report import CheckReport
from .chmod_wish import ChmodWish
from .chosen_wish import ChosenWish
from .connection_counts import ConnectionCounts
from .connection_decision import ConnectionDecision
from .connection_how import ConnectionHow
from .connection_list import ConnectionList
from .connection_report import ConnectionReport
from .copy_wish import CopyWish
from .degree import Degree
from .denial import Denial
from .difference import Difference
from .discard_wish import DiscardWish
from .discarded_changes import DiscardedChanges
from .edit_outcome import EditOutcome
from .edit_report import EditReport
from .edit_wish import EditWish
from .edited_text import EditedText
from .edits_wish import EditsWish
from .ending_kind import EndingKind
from .ending_report import EndingReport
from .enforced import Enforced
from .enforcement import Enforcement
from .error_body import ErrorBody
from .event_list import EventList
from .event_report import EventReport
from .event_report_data import EventReportData
from .exec_list import ExecList
from .exec_news import ExecNews
from .exec_report import ExecReport
from .exec_wish import ExecWish
from .exec_wish_env import ExecWishEnv
from .execs_output_stream import ExecsOutputStream
from .export_manifest import ExportManifest
from .exported_workspace import ExportedWorkspace
from .extend_wish import ExtendWish
from .failure_name import FailureName
from .file_content import FileContent
from .file_contents import FileContents
from .file_copied import FileCopied
from .file_done import FileDone
from .file_edit import FileEdit
from .file_entry import FileEntry
from .file_event_report import FileEventReport
from .file_imported import FileImported
from .file_left_out import FileLeftOut
from .file_list import FileList
from .file_matches import FileMatches
from .file_names import FileNames
from .file_patch import FilePatch
from .file_seen import FileSeen
from .file_skipped import FileSkipped
from .file_window import FileWindow
from .files_seen import FilesSeen
from .fork_wish import ForkWish
from .glob_wish import GlobWish
from .grep_wish import GrepWish
from .health_report import HealthReport
from .history_report import HistoryReport
from .hunk_list import HunkList
from .hunk_outcome import HunkOutcome
from .hunk_text import HunkText
from .init_failure import InitFailure
from .init_state import InitState
from .kind_wish import KindWish
from .layer_change import LayerChange
from .layer_file import LayerFile
from .layer_hunks import LayerHunks
from .layer_tier import LayerTier
from .layers_diff_view import LayersDiffView
from .limits_wish import LimitsWish
from .lines_shown import LinesShown
from .log_part import LogPart
from .manifest import Manifest
from .manifest_entry_type_0 import ManifestEntryType0
from .manifest_entry_type_1 import ManifestEntryType1
from .manifest_entry_type_2 import ManifestEntryType2
from .manifest_entry_type_3 import ManifestEntryType3
from .manifest_entry_type_4 import ManifestEntryType4
from .manifest_entry_type_5 import ManifestEntryType5
from .manifest_entry_type_6 import ManifestEntryType6
from .manifest_state import ManifestState
from .matched_file import MatchedFile
from .matched_line import MatchedLine
from .metrics_report import MetricsReport
from .mkdir_wish import MkdirWish
from .move_wish import MoveWish
from .nearest_place import NearestPlace
from .network_report import NetworkReport
from .network_wish import NetworkWish
from .omitted import Omitted
from .one_content import OneContent
from .patch_action import PatchAction
from .patch_format import PatchFormat
from .patch_note import PatchNote
from .patch_outcome import PatchOutcome
from .patch_refusal import PatchRefusal
from .patch_refusal_kind import PatchRefusalKind
from .patch_report import PatchReport
from .patched_file import PatchedFile
from .patched_hunk import PatchedHunk
from .permission_kind import PermissionKind
from .permission_list import PermissionList
from .permission_report import PermissionReport
from .permission_state import PermissionState
from .phase import Phase
from .point_command import PointCommand
from .point_deed import PointDeed
from .point_effects import PointEffects
from .point_import import PointImport
from .point_kind import PointKind
from .point_origin import PointOrigin
from .point_path import PointPath
from .point_report import PointReport
from .port_list import PortList
from .port_report import PortReport
from .port_wish import PortWish
from .probe_report import ProbeReport
from .problem_report import ProblemReport
from .problem_with_applied_changes import ProblemWithAppliedChanges
from .problem_with_file_edit import ProblemWithFileEdit
from .problem_with_file_patch import ProblemWithFilePatch
from .profile_name import ProfileName
from .pull_name import PullName
from .read_many_wish import ReadManyWish
from .receipt import Receipt
from .rules_wish import RulesWish
from .run_report import RunReport
from .run_wish import RunWish
from .said_by_guest import SaidByGuest
from .sandbox_page import SandboxPage
from .sandbox_wish import SandboxWish
from .sandbox_wish_env import SandboxWishEnv
from .sandbox_wish_labels_type_0 import SandboxWishLabelsType0
from .scope_wish import ScopeWish
from .secret_alarm import SecretAlarm
from .secret_list import SecretList
from .secret_report import SecretReport
from .seen_by_host import SeenByHost
from .session_report import SessionReport
from .session_report_labels import SessionReportLabels
from .shell_check_wish import ShellCheckWish
from .shell_list import ShellList
from .shell_ran import ShellRan
from .shell_report import ShellReport
from .shell_run_wish import ShellRunWish
from .signal_wish import SignalWish
from .size_wish import SizeWish
from .snapshot_imported import SnapshotImported
from .snapshot_list import SnapshotList
from .snapshot_report import SnapshotReport
from .snapshot_wish import SnapshotWish
from .spec_wish import SpecWish
from .spec_wish_env import SpecWishEnv
from .start_wish import StartWish
from .stopped_by import StoppedBy
from .stream_report import StreamReport
from .tell_wish import TellWish
from .told_type_0 import ToldType0
from .told_type_1 import ToldType1
from .told_type_2 import ToldType2
from .told_type_3 import ToldType3
from .told_type_4 import ToldType4
from .told_type_5 import ToldType5
from .told_type_6 import ToldType6
from .told_type_7 import ToldType7
from .told_type_8 import ToldType8
from .tool_arguments import ToolArguments
from .tool_list import ToolList
from .tool_outcome import ToolOutcome
from .tool_report import ToolReport
from .truncation import Truncation
from .truncation_reason import TruncationReason
from .undo_report import UndoReport
from .undo_wish import UndoWish
from .usage_report import UsageReport
from .verdict import Verdict
from .window import Window

__all__ = (
    "AnswerName",
    "AnswerWish",
    "AppliedChanges",
    "ApplyWish",
    "AskedType0",
    "AskedType1",
    "AskedType2",
    "AskedType3",
    "AskedType4",
    "AskedType5",
    "AuditList",
    "AuditReport",
    "Basis",
    "CaseWish",
    "ChangeList",
    "CheckReport",
    "ChmodWish",
    "ChosenWish",
    "ConnectionCounts",
    "ConnectionDecision",
    "ConnectionHow",
    "ConnectionList",
    "ConnectionReport",
    "CopyWish",
    "Degree",
    "Denial",
    "Difference",
    "DiscardedChanges",
    "DiscardWish",
    "EditedText",
    "EditOutcome",
    "EditReport",
    "EditsWish",
    "EditWish",
    "EndingKind",
    "EndingReport",
    "Enforced",
    "Enforcement",
    "ErrorBody",
    "EventList",
    "EventReport",
    "EventReportData",
    "ExecList",
    "ExecNews",
    "ExecReport",
    "ExecsOutputStream",
    "ExecWish",
    "ExecWishEnv",
    "ExportedWorkspace",
    "ExportManifest",
    "ExtendWish",
    "FailureName",
    "FileContent",
    "FileContents",
    "FileCopied",
    "FileDone",
    "FileEdit",
    "FileEntry",
    "FileEventReport",
    "FileImported",
    "FileLeftOut",
    "FileList",
    "FileMatches",
    "FileNames",
    "FilePatch",
    "FileSeen",
    "FileSkipped",
    "FilesSeen",
    "FileWindow",
    "ForkWish",
    "GlobWish",
    "GrepWish",
    "HealthReport",
    "HistoryReport",
    "HunkList",
    "HunkOutcome",
    "HunkText",
    "InitFailure",
    "InitState",
    "KindWish",
    "LayerChange",
    "LayerFile",
    "LayerHunks",
    "LayersDiffView",
    "LayerTier",
    "LimitsWish",
    "LinesShown",
    "LogPart",
    "Manifest",
    "ManifestEntryType0",
    "ManifestEntryType1",
    "ManifestEntryType2",
    "ManifestEntryType3",
    "ManifestEntryType4",
    "ManifestEntryType5",
    "ManifestEntryType6",
    "ManifestState",
    "MatchedFile",
    "MatchedLine",
    "MetricsReport",
    "MkdirWish",
    "MoveWish",
    "NearestPlace",
    "NetworkReport",
    "NetworkWish",
    "Omitted",
    "OneContent",
    "PatchAction",
    "PatchedFile",
    "PatchedHunk",
    "PatchFormat",
    "PatchNote",
    "PatchOutcome",
    "PatchRefusal",
    "PatchRefusalKind",
    "PatchReport",
    "PermissionKind",
    "PermissionList",
    "PermissionReport",
    "PermissionState",
    "Phase",
    "PointCommand",
    "PointDeed",
    "PointEffects",
    "PointImport",
    "PointKind",
    "PointOrigin",
    "PointPath",
    "PointReport",
    "PortList",
    "PortReport",
    "PortWish",
    "ProbeReport",
    "ProblemReport",
    "ProblemWithAppliedChanges",
    "ProblemWithFileEdit",
    "ProblemWithFilePatch",
    "ProfileName",
    "PullName",
    "ReadManyWish",
    "Receipt",
    "RulesWish",
    "RunReport",
    "RunWish",
    "SaidByGuest",
    "SandboxPage",
    "SandboxWish",
    "SandboxWishEnv",
    "SandboxWishLabelsType0",
    "ScopeWish",
    "SecretAlarm",
    "SecretList",
    "SecretReport",
    "SeenByHost",
    "SessionReport",
    "SessionReportLabels",
    "ShellCheckWish",
    "ShellList",
    "ShellRan",
    "ShellReport",
    "ShellRunWish",
    "SignalWish",
    "SizeWish",
    "SnapshotImported",
    "SnapshotList",
    "SnapshotReport",
    "SnapshotWish",
    "SpecWish",
    "SpecWishEnv",
    "StartWish",
    "StoppedBy",
    "StreamReport",
    "TellWish",
    "ToldType0",
    "ToldType1",
    "ToldType2",
    "ToldType3",
    "ToldType4",
    "ToldType5",
    "ToldType6",
    "ToldType7",
    "ToldType8",
    "ToolArguments",
    "ToolList",
    "ToolOutcome",
    "ToolReport",
    "Truncation",
    "TruncationReason",
    "UndoReport",
    "UndoWish",
    "UsageReport",
    "Verdict",
    "Window",
)
